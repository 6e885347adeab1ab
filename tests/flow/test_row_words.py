"""What each word of a row does: the findings in a piece of code with the row, and without it."""

from __future__ import annotations

import textwrap

import pytest

from devlint.flow import analyze
from devlint.flow.catalog import schema
from devlint.flow.catalog.libraries import BUILT_IN, Catalog, Layer
from devlint.rules.registry import registry
from devlint.rules.verdicts import verdicts
from devlint.source.files import toml
from devlint.source.tree import Source

PRELUDE = "import torch; from torch import nn; import library\n"
THERE = "torch.ones(4).cuda()"
MOVES_SAMPLES = "def move(x):\n    return x.cuda()\n"
LOADS = "torch.utils.data.DataLoader([], num_workers=2)"


def found(code: str, rows: str = "") -> set[str]:
    """The findings in a file, as `CODE ROW`."""
    layer = Layer()
    layer.add(toml(rows.encode()))
    source = Source.parse(textwrap.dedent(code), "example.py")
    assert isinstance(source, Source)
    catalog = Catalog([layer]) if rows else BUILT_IN
    sites = analyze(source.tree, source.text, catalog=catalog)
    judged = verdicts(source, tuple(registry().values()), sites)
    return {f"{one.code} {one.span.row}" for one, _ in judged}


def changed(code: str, rows: str) -> tuple[set[str], set[str]]:
    """The findings that rows add, and those that they take away; the first line of the code is row 1."""
    with_rows, without = found(PRELUDE.strip() + code, rows), found(PRELUDE.strip() + code)
    return with_rows - without, without - with_rows


ADDED = {
    "alias-of": ('["library.Dense"]\nalias-of = "torch.nn.Linear"', f"\nlibrary.Dense(4, 4)({THERE})", "DVL101 2"),
    "alias-of, a pattern": (
        '["library.layers.**"]\nalias-of = "torch.nn.*"',
        f"\nlibrary.layers.dense.Linear(4, 4)({THERE})",
        "DVL101 2",
    ),
    "is: module": ('["library.Net"]\nis = "module"', f"\nlibrary.Net(4)({THERE})", "DVL101 2"),
    "is: module, a base": (
        '["library.Net"]\nis = "module"',
        """
class Own(library.Net):
    def __init__(self):
        super().__init__()
        self.scale = torch.ones(4)

    def forward(self, x):
        return x * self.scale
""",
        "DVL104 5",
    ),
    "is: loader": (
        '["library.Loader"]\nis = "loader"',
        "\ndef f(data):\n    model = nn.Linear(4, 4).cuda()\n    for x in library.Loader(data):\n        model(x)",
        "DVL101 5",
    ),
    "is: dataset": (
        '["library.Pictures"]\nis = "dataset"',
        f"\n{MOVES_SAMPLES}\n\nlibrary.Pictures(transform=move), {LOADS}",
        "DVL303 3",
    ),
    "is: transform": (
        '["library.Compose"]\nis = "transform"',
        f"\n{MOVES_SAMPLES}\n\nlibrary.Compose(transforms=[move]), {LOADS}",
        "DVL303 3",
    ),
    "is: tensor-mapping": (
        '["library.Fields"]\nis = "tensor-mapping"\ndevice-argument = "device"',
        '\nfields = library.Fields({"a": torch.ones(4)}, device="cuda")\nfields["a"] + torch.ones(4)',
        "DVL101 3",
    ),
    "is: tensor-mapping, with what is put in": (
        '["library.Fields"]\nis = "tensor-mapping"',
        f'\nfields = library.Fields({{"a": {THERE}}})\nfields["a"] + torch.ones(4)',
        "DVL101 3",
    ),
    "is: estimator": (
        '["library.Means"]\nis = "estimator"\n["library.Means.fit"]\nmust-be-cpu = ["*"]',
        f"\nlibrary.Means().fit({THERE})",
        "DVL107 2",
    ),
    "is: object": (
        '["library.Lab"]\nis = "object"\n["library.Lab.put"]\nresult = "argument:0"\nplace = "cuda"',
        "\nlab = library.Lab()\nlab.put(torch.ones(4)) + torch.ones(4)",
        "DVL101 3",
    ),
    "result: tensor": (
        '["library.load"]\nresult = "tensor"\nplace = "cuda"',
        "\nlibrary.load() + torch.ones(4)",
        "DVL101 2",
    ),
    "result: module": (
        '["library.create"]\nresult = "module"\nplace = "cuda"',
        "\nlibrary.create()(torch.ones(4))",
        "DVL101 2",
    ),
    "result: self": (
        '["library.Net"]\nis = "module"\n["library.Net.freeze"]\nresult = "self"',
        f"\nlibrary.Net().freeze()({THERE})",
        "DVL101 2",
    ),
    "result: call": (
        '["library.Net"]\nis = "module"\n["library.Net.update"]\nresult = "call"',
        f"\nlibrary.Net().update({THERE})",
        "DVL101 2",
    ),
    "result: an argument": (
        '["library.wrap"]\nresult = "argument:model"\nparameters = ["name", "model"]',
        f'\nlibrary.wrap("x", nn.Linear(4, 4))({THERE})',
        "DVL101 2",
    ),
    "result: device": (
        '["library.pick"]\nresult = "device"\nplace = "cuda"',
        "\ntorch.ones(4, device=library.pick()) * torch.ones(4)",
        "DVL101 2",
    ),
    "place: accelerator": (
        '["library.to_gpu"]\nresult = "argument:0"\nplace = "accelerator"',
        "\nlibrary.to_gpu(torch.ones(4)) + torch.ones(4)",
        "DVL101 2",
    ),
    "place: an argument": (
        '["library.send"]\nresult = "argument:0"\nplace = "argument:device"\nparameters = ["x", "device"]',
        '\nlibrary.send(torch.ones(4), "cuda") + torch.ones(4)',
        "DVL101 2",
    ),
    "place: where an argument is": (
        '["library.join"]\nresult = "argument:0"\nplace = "argument:1"',
        f"\nlibrary.join(torch.ones(4), {THERE}) + torch.ones(4)",
        "DVL101 2",
    ),
    "place: inputs": (
        '["library.mix"]\nresult = "tensor"\nplace = "inputs"',
        f"\nlibrary.mix({THERE}) + torch.ones(4)",
        "DVL101 2",
    ),
    "place: default": (
        '["library.noise"]\nresult = "tensor"\nplace = "default"',
        f"\nlibrary.noise([4]).flatten() + {THERE}",
        "DVL101 2",
    ),
    "place: cpu": (
        '["library.read"]\nresult = "argument:0"\nplace = "cpu"',
        f"\nlibrary.read({THERE}) + {THERE}",
        "DVL101 2",
    ),
    "place: self": (
        '["library.Net"]\nis = "module"\n["library.Net.mask"]\nresult = "tensor"\nplace = "self"',
        "\nlibrary.Net().cuda().mask() + torch.ones(4)",
        "DVL101 2",
    ),
    "place: all that is in a list or a dict": (
        '["library.to_gpu"]\nresult = "argument:0"\nplace = "cuda"',
        '\nbatch = library.to_gpu({"x": [torch.ones(4)]})\nbatch["x"][0] + torch.ones(4)',
        "DVL101 3",
    ),
    "device-argument": (
        '["library.noise"]\nresult = "tensor"\nplace = "default"\ndevice-argument = "device"',
        '\nlibrary.noise([4], device="cuda") + torch.ones(4)',
        "DVL101 2",
    ),
    "moves": (
        '["library.Fields"]\nis = "tensor-mapping"\nmoves = ["send"]',
        '\nfields = library.Fields({"a": torch.ones(4)}).send("cuda")\nfields["a"] + torch.ones(4)',
        "DVL101 3",
    ),
    "managed-by": (
        '["library.prepare"]\nresult = "argument:0"\nmanaged-by = "Library"',
        '\ndef setup(model):\n    model = library.prepare(model)\n    return model.to("cuda")',
        "DVL114 4",
    ),
    "managed-by, a module that is known": (
        '["library.prepare"]\nresult = "argument:0"\nplace = "accelerator"\nmanaged-by = "Library"',
        '\nmodel = library.prepare(nn.Linear(4, 4))\nmodel.to("cuda")',
        "DVL114 3",
    ),
    "must-be-cpu: all": ('["library.plot"]\nmust-be-cpu = ["*"]', f"\nlibrary.plot({THERE})", "DVL107 2"),
    "must-be-cpu: in lists": ('["library.plot"]\nmust-be-cpu = ["*[]"]', f"\nlibrary.plot([{THERE}])", "DVL107 2"),
    "must-be-cpu: one": (
        '["library.plot"]\nmust-be-cpu = ["y"]\nparameters = ["x", "y"]',
        f"\nlibrary.plot({THERE}, 1)\nlibrary.plot(1, {THERE})",
        "DVL107 3",
    ),
    "rejects-cpu": (
        '["library.mix"]\nparameters = ["a", "b"]\nrejects-cpu = ["b"]',
        f"\nlibrary.mix({THERE}, torch.ones(4))",
        "DVL101 2",
    ),
    "rejects-cpu: all, a hint": (
        '["library.mix"]\nrejects-cpu = ["*"]',
        "\ndef f(x: torch.Tensor):\n    return library.mix(x.to(x.device), torch.ones(4))",
        "DVL103 3",
    ),
    "waits": (
        '["library.log"]\nwaits = true',
        """
def train(loader, optimizer):
    model = nn.Linear(4, 4).cuda()
    for x in loader:
        loss = model(x.cuda()).sum()
        loss.backward()
        optimizer.step()
        library.log(loss)
""",
        "DVL401 8",
    ),
}  # fmt: skip

ADDED["steps"] = (
    '["library.Trainer"]\nsteps = ["train_batch"]',
    """
class Own(library.Trainer):
    def train_batch(self, model, x):
        loss = model(x)
        self.log(loss.item())
        return loss
""",
    "DVL401 5",
)

REMOVED = {
    "accepts-cpu": (
        (
            '["torch.nn.functional.mse_loss"]\nresult = "tensor"\nrejects-cpu = ["a", "b"]\naccepts-cpu = ["b"]\n'
            'parameters = ["a", "b"]'
        ),
        f"\nnn.functional.mse_loss({THERE}, torch.ones(4))",
        "DVL101 2",
    ),
    "stateless": (
        '["torch.nn.Linear"]\nis = "module"\nstateless = true',
        f"\nnn.Linear(4, 4)({THERE})",
        "DVL101 2",
    ),
    "result: unknown": (
        '["library.parse"]\nresult = "unknown"',
        "\nclass Net(nn.Module):\n    def forward(self, x):\n        return library.parse(x) + torch.ones(4)",
        "DVL103 4",
    ),
    "result: foreign": (
        '["library.**"]\nresult = "foreign"',
        '\nlibrary.array(3, device="cuda")',
        "DVL602 2",
    ),
    "needs": ('[library]\nneeds = "cuda"', f"\nprint({THERE})", "DVL601 2"),
    "runs: training": (
        '[library]\nruns = ["training"]',
        (
            '\nif __name__ == "__main__":\n    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")\n'
            "    nn.Linear(4, 4)(torch.ones(4)).sum().backward()"
        ),
        "DVL113 3",
    ),
    "runs: processes": (
        '[library]\nruns = ["processes"]',
        '\nimport os\ntorch.cuda.init()\nos.environ["CUDA_VISIBLE_DEVICES"] = "0"',
        "DVL608 4",
    ),
}


@pytest.mark.parametrize(("rows", "code", "finding"), ADDED.values(), ids=ADDED)
def test_a_row_lets_devlint_find_more(rows: str, code: str, finding: str) -> None:
    added, removed = changed(code, rows)
    assert added == {finding}
    assert not removed


@pytest.mark.parametrize(("rows", "code", "finding"), REMOVED.values(), ids=REMOVED)
def test_a_row_lets_devlint_be_silent(rows: str, code: str, finding: str) -> None:
    added, removed = changed(code, rows)
    assert finding in removed
    assert not added


def test_a_framework_has_tensors_of_its_own() -> None:
    code = f"# torch\nimport library\ny = {THERE}\ny.numpy()\n"
    assert "DVL107 4" in found(code)
    assert "DVL107 4" not in found(code, '[library]\nis = "framework"')


def test_a_package_that_needs_an_accelerator_can_do_with_any() -> None:
    code = f"import torch; import library\nprint({THERE})\n"
    assert found(code, '[library]\nneeds = "accelerator"') != found(code, '[library]\nneeds = "cuda"')


def test_a_part_of_a_package_that_needs_cuda_may_do_without() -> None:
    rows = '[library]\nneeds = "cuda"\n["library.plain"]\nneeds = "nothing"'
    code = f"import torch; from library.{{}} import kernel\nprint({THERE})\n"
    assert found(code.format("plain"), rows) == found(code.format("plain"))
    assert "DVL601 2" in found(code.format("plain"), rows) - found(code.format("other"), rows)


def test_what_is_elementwise_makes_a_number_of_numbers() -> None:
    """A tensor of one number may stay on the CPU, one of an array may not."""
    code = (
        "import torch; from torch import nn; import library\n"
        "class Net(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.factor = torch.tensor(library.sqrt(2.0))\n"
        "    def forward(self, x):\n"
        "        return x * self.factor\n"
    )
    row = '["library.sqrt"]\nresult = "host-array"\n'
    assert found(code, row) - found(code, f"{row}elementwise = true") == {"DVL104 5"}


def test_every_word_is_tried() -> None:
    tried = " ".join(rows for rows, *_ in (*ADDED.values(), *REMOVED.values()))
    assert [
        word for word in schema.VOCABULARY if word not in tried and word not in ("names", "elementwise", "example")
    ] == []
