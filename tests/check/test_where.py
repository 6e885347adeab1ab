"""Where names are, and how they came there."""

from __future__ import annotations

import json
from textwrap import dedent

import pytest
from click.testing import CliRunner, Result

from devlint.check.where.lookup import NoSuchNameError, where
from devlint.cli import main
from devlint.finding import Answer
from devlint.source.tree import Source
from tests.notebooks import cell, notebook

HEAD = "import torch\nfrom torch import nn\nfrom torch.utils.data import DataLoader, TensorDataset\n"


def ask(code: str, name: str = "", column: int = 0) -> list[Answer]:
    """The answers about the line that ends in `# here`."""
    text = HEAD + dedent(code)
    source = Source.parse(text)
    assert isinstance(source, Source)
    row = next(number for number, line in enumerate(source.lines, 1) if line.endswith("# here"))
    return where(source, row, name, column)


def told(code: str, name: str = "") -> list[str]:
    return [answer.message for answer in ask(code, name)]


def story(answer: Answer) -> list[tuple[int, str]]:
    return [(place.span.row, place.label) for place in answer.story]


def test_facts() -> None:
    assert told("x = torch.zeros(3)\ny = x.cuda(1)  # here\n") == [
        "`y` is a tensor on `cuda:1`",
        "`x` is a tensor on the CPU",
    ]


def test_the_story_leads_from_the_last_place_to_the_first() -> None:
    (answer,) = ask(
        """
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        x = torch.zeros(3)
        y = x.to(device)
        print(y)  # here
        """,
        "y",
    )
    assert answer.message == "`y` is a tensor on `device`"
    assert answer.devices == ("cuda", "cpu")
    assert (7, "moved to `device` here") in story(answer)
    assert (5, "`device` is `cuda` where an accelerator is available, else the CPU") in story(answer)


def test_what_is_moved_is_told_as_it_is_written() -> None:
    code = """
    def train(batch, sizes):
        batch = {k: v.to("cuda") for k, v in batch.items()}
        return batch, sizes[:batch.size].cpu()  # here
    """
    assert story(ask(code, "batch")[0]) == [(6, "`v` is moved to `cuda` here")]


def test_a_name_is_asked_where_it_stands() -> None:
    """Read it is on one device, assigned in the same line on another."""
    code = "x = torch.zeros(3)\nx = x.cuda()  # here\nx = x.cpu()\n"
    first, second = ask(code, "x")
    assert (first.span.column, first.devices) == (1, ("cuda",))
    assert (second.span.column, second.devices) == (5, ("cpu",))


@pytest.mark.parametrize(("column", "devices"), [(1, ("cuda",)), (5, ("cpu",)), (6, ("cpu",))])
def test_a_column_says_which(column: int, devices: tuple[str, ...]) -> None:
    (answer,) = ask("x = torch.zeros(3)\nx = x.cuda()  # here\n", column=column)
    assert answer.devices == devices


def test_attributes_of_a_module() -> None:
    code = """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 3)
            self.mask = torch.ones(3)

        def forward(self, x):
            return self.layer(x) * self.mask  # here
    """
    assert told(code, "self.layer") == ["`self.layer` is a module wherever the module is put that it belongs to"]
    assert told(code, "mask") == ["`self.mask` is a tensor on the CPU"]
    assert told(code, "x") == ["`x` is wherever the caller keeps it"]
    assert [answer.devices for name in ("self.layer", "x") for answer in ask(code, name)] == [
        ("module",),
        ("x.device",),
    ]


def test_batches_and_modules_that_were_moved() -> None:
    code = """
    def train(model, args):
        model.to(args.device)
        loader = DataLoader(TensorDataset(torch.rand(9, 3), torch.rand(9)))
        for x, y in loader:
            out = model(x.to(args.device))
            loss = nn.functional.mse_loss(out, y)  # here
    """
    assert told(code, "out") == ["`out` is probably on `args.device`"]
    (batch,) = ask(code, "y")
    assert batch.devices == ("cpu",)
    assert story(batch) == [(7, "its batches come from this loader")]


def test_a_device_that_a_configuration_names() -> None:
    """An argument need not be a tensor to have a device."""
    code = """
    def build(cfg):
        device = torch.device(cfg.device)
        return device, nn.Linear(2, 2).to(device)

    def main(cfg, batches):
        device, model = build(cfg)
        for batch in batches:
            print(batch["x"], model, device)  # here
    """
    assert told(code, "device") == ["`device` names `cfg.device`"]
    assert told(code, "model") == ["`model` is a module on `cfg.device`"]
    (batch,) = ask(code, "batch")
    assert batch.message == "`batch` is wherever the caller keeps it"
    assert story(batch) == [(9, "it comes from this argument")]


def test_only_a_caller_knows() -> None:
    code = """
    def scale(x):
        return x * 2  # here

    def main():
        return scale(torch.ones(3, device="cuda"))
    """
    own, called = ask(code, "x")
    assert own.message == "`x` is wherever the caller keeps it"
    assert (called.caller, called.devices) == ("main", ("cuda",))
    assert called.message == "`x` is a tensor on `cuda`, as `main` calls this"


def test_parameters_and_devices() -> None:
    assert told('def f(x, device="cuda"):  # here\n    return x.to(device)\n', "device") == [
        "`device` is a device, of which nothing more is known"
    ]


def test_a_line_tells_of_what_is_known_alone() -> None:
    assert told("import os\npath = os.getcwd()  # here\n") == []
    assert told("import os\npath = os.getcwd()  # here\n", "path") == ["nothing is known of where `path` is"]


def test_branches() -> None:
    code = """
    def pick(flag):
        x = torch.ones(3)
        if flag:
            x = x.cuda()
        return x  # here
    """
    (answer,) = ask(code, "x")
    assert set(answer.devices) == {"cpu", "cuda"}
    assert {row for row, _ in story(answer)} == {6, 8}


def test_a_loop_is_seen_as_it_settles() -> None:
    """In its first round the interpreter goes ahead in silence: what it says then does not count."""
    code = """
    def run(n):
        x = torch.ones(3)
        for _ in range(n):
            y = x + 1  # here
            x = x.cuda()
    """
    (answer,) = ask(code, "x")
    assert set(answer.devices) == {"cpu", "cuda"}


def test_what_is_not_there() -> None:
    with pytest.raises(NoSuchNameError, match="there is no name `z` in line 4"):
        ask("x = 1  # here\n", "z")
    source = Source.parse("x = 1\n")
    assert isinstance(source, Source)
    with pytest.raises(NoSuchNameError, match="there is no line 7"):
        where(source, 7)


def test_nothing_of_this_is_said_of_findings() -> None:
    """Asking does not change what the file's interpretation finds."""
    from devlint import check_source

    code = HEAD + "x = torch.zeros(3, 3)\ny = torch.ones(3, 3).cuda()\nz = x + y\n"
    before = check_source(code)
    source = Source.parse(code)
    assert isinstance(source, Source)
    where(source, 6)
    assert check_source(code) == before
    assert [finding.code for finding in before].count("DVL101") == 1


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(main, ["where", *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_the_command(tree) -> None:
    tree({"a.py": "import torch\nx = torch.zeros(3)\ny = x.cuda()\n"})
    shown = run("a.py:3:x")
    assert shown.exit_code == 0
    assert shown.stdout == (
        "`x` is a tensor on the CPU\n"
        " --> a.py:3:5\n"
        "  |\n"
        "2 | x = torch.zeros(3)\n"
        "  |     -------------- created on the CPU here\n"
        "3 | y = x.cuda()\n"
        "  |     ^\n"
        "  |\n"
        "\n"
    )
    (answer,) = json.loads(run("a.py:3:y", "--output-format", "json").stdout)
    assert (answer["name"], answer["kind"], answer["devices"], answer["certain"]) == ("y", "tensor", ["cuda"], True)
    assert answer["location"] == {"row": 3, "column": 1}
    assert [place["location"]["row"] for place in answer["story"]] == [3]


def test_the_command_across_files(tree) -> None:
    tree(
        {
            "pyproject.toml": "",
            "helpers.py": "import torch\n\n\ndef mask(n):\n    return torch.ones(n)\n",
            "main.py": "from helpers import mask\nimport torch\nm = mask(3)\nprint(m)\n",
        }
    )
    shown = run("main.py:4:m").stdout
    assert shown.startswith("`m` is a tensor on the CPU\n --> main.py:4:7\n")
    assert "3 | m = mask(3)\n  |     ------- `mask` returns it here\n" in shown
    assert "::: helpers.py:5:12\n" in shown


@pytest.mark.parametrize(
    ("place", "line"),
    [
        ("a.py", "error: expected FILE:LINE or FILE:LINE:NAME, not 'a.py'\n"),
        ("a.py:1:x y", "error: a.py:1:x y: 'x y' is not a name such as `x` or `self.weight`\n"),
        ("a.py:9", "error: a.py: there is no line 9: the file has 2\n"),
        ("a.py:1:y", "error: a.py: there is no name `y` in line 1\n"),
        ("b.py:1", "error: b.py: No such file or directory\n"),
        ("broken.py:1", "error: broken.py:1:5: invalid syntax\n"),
    ],
)
def test_what_makes_no_sense_is_one_line(tree, place: str, line: str) -> None:
    tree({"a.py": "x = 1\n", "broken.py": "x = = 1\n"})
    result = run(place)
    assert (result.exit_code, result.stderr, result.stdout) == (2, line, "")


def test_not_known_is_no_success(tree) -> None:
    tree({"a.py": "x = 1\n"})
    assert run("a.py:1").exit_code == 1
    assert run("a.py:1").stdout == "a.py:1: nothing is known of where anything in this line is\n\n"


def test_the_command_in_a_notebook(tree) -> None:
    tree(
        {
            "a.ipynb": notebook(
                "!ls\nimport torch", cell("text", "markdown"), "x = torch.zeros(3)", "%time y = x.cuda()", "("
            )
        }
    )
    shown = run("a.ipynb:cell 4:1:x")
    assert shown.stdout == (
        "`x` is a tensor on the CPU\n"
        " --> a.ipynb:cell 4:1:11\n"
        "  |\n"
        "1 | %time y = x.cuda()\n"
        "  |           ^\n"
        "  |\n"
        " ::: a.ipynb:cell 3:1:5\n"
        "  |\n"
        "1 | x = torch.zeros(3)\n"
        "  |     -------------- created on the CPU here\n"
        "  |\n"
        "\n"
    )
    (answer,) = json.loads(run("a.ipynb:4:1:y", "--output-format", "json").stdout)
    assert (answer["cell"], answer["devices"]) == (4, ["cuda"])


NINES = "9" * 5_000  # more digits than Python makes a number of


@pytest.mark.parametrize(
    ("place", "line"),
    [
        ("a.ipynb:1", "error: expected FILE:CELL:LINE or FILE:CELL:LINE:NAME, not 'a.ipynb:1'\n"),
        ("a.ipynb:9:1", "error: a.ipynb:cell 9: there is no such cell: the notebook has 3\n"),
        ("a.ipynb:1:5", "error: a.ipynb:cell 1: there is no line 5: the cell has 1\n"),
        ("a.ipynb:1:1:z", "error: a.ipynb:cell 1: there is no name `z` in line 1\n"),
        ("a.ipynb:2:1", "error: a.ipynb:cell 2: it holds no Python code\n"),
        ("a.ipynb:3:1", "error: a.ipynb:cell 3:1:1: '(' was never closed\n"),
        ("b.ipynb:3:1", "error: b.ipynb:cell 3: there is no such cell: the notebook has 0\n"),
        pytest.param(
            f"a.ipynb:1:{NINES}",
            f"error: expected FILE:CELL:LINE or FILE:CELL:LINE:NAME, not 'a.ipynb:1:{NINES}'\n",
            id="row",
        ),
        pytest.param(
            f"a.ipynb:1:1:{NINES}",
            f"error: a.ipynb:1:1:{NINES}: '{NINES}' is not a name such as `x` or `self.weight`\n",
            id="column",
        ),
    ],
)
def test_what_makes_no_sense_in_a_notebook_is_one_line(tree, place: str, line: str) -> None:
    tree({"a.ipynb": notebook("x = 1", "%%bash\nls", "("), "b.ipynb": ""})
    result = run(place)
    assert (result.exit_code, result.stderr, result.stdout) == (2, line, "")
