"""One call gets one advice, and one cause is one finding."""

from __future__ import annotations

import pytest

from devlint.check.analysis import check_source
from devlint.config.schema import Config, RuleLayer
from devlint.finding import Finding, Severity
from devlint.rules.subsumption import summarized

HEAD = "import torch\nfrom torch import nn\n"
TWICE = HEAD + "def f(n):\n    x = torch.zeros(n).cuda()\n    return x.cuda()\n"


def found(text: str, *codes: str) -> list[Finding]:
    return check_source(text, config=Config(rule_layers=(RuleLayer(codes),)))


def reported(text: str, *codes: str) -> list[Finding]:
    """What a run reports of a file: by default, or of the rules that are selected."""
    config = Config(rule_layers=(RuleLayer(codes),)) if codes else Config()
    return summarized(check_source(text, config=config))


def also(finding: Finding) -> list[int]:
    return [place.span.row for place in finding.related if place.label == "also here"]


def told(text: str, *codes: str) -> list[tuple[str, int]]:
    return [(finding.code, finding.span.row) for finding in found(text, *codes)]


def test_what_goes_away_with_the_call_needs_no_other_device() -> None:
    assert told(TWICE, "DVL2", "DVL6", "DVL9") == [("DVL601", 4), ("DVL201", 5)]
    # nobody else speaks of it
    assert told(TWICE, "DVL601") == [("DVL601", 4), ("DVL601", 5)]


@pytest.mark.parametrize("code", ["DVL201", "DVL201, DVL601"])
def test_who_silences_a_finding_silences_what_it_covers(code: str) -> None:
    silent = TWICE.replace("x.cuda()\n", f"x.cuda()  # devlint: ignore[{code}]\n")
    assert told(silent, "DVL2", "DVL6", "DVL9") == [("DVL601", 4)]


def test_a_creation_is_told_of_by_one_rule_if_that_says_how() -> None:
    assert told(HEAD + "def f(n):\n    return torch.ones(n).cuda()\n", "DVL203", "DVL601") == [("DVL601", 4)]
    # which takes no device itself, as only the other rule says
    typed = HEAD + "def f(n):\n    return torch.FloatTensor(n, n).cuda()\n"
    assert told(typed, "DVL203", "DVL601") == [("DVL203", 4), ("DVL601", 4)]


READ = (
    HEAD
    + """
def train(loader, model, log, device):
    for images in loader:
        loss = model(images.to(device)).mean()
        loss.backward()
        log(loss.item())
        work()
        log(loss.item()){}
        work()
        print(f"{{loss.item()}}")
"""
)


def test_a_value_that_is_read_three_times_in_a_step_is_one_finding() -> None:
    (finding,) = reported(READ.format(""), "DVL401")
    assert (finding.span.row, also(finding)) == (8, [10, 12])


def test_a_place_that_is_silenced_is_not_shown_beside_others() -> None:
    (finding,) = reported(READ.format("  # devlint: ignore[DVL401]"), "DVL401", "DVL901")
    assert also(finding) == [12]


def test_who_silences_the_first_place_of_a_cause_silences_the_others() -> None:
    silent = READ.format("").replace("log(loss.item())\n", "log(loss.item())  # devlint: ignore[DVL401]\n", 1)
    assert reported(silent, "DVL401") == []


def test_what_is_made_anew_in_between_is_another_value() -> None:
    anew = READ.format("").replace("work()\n        print", "loss = model(images.to(device)).sum()\n        print")
    assert [(one.span.row, also(one)) for one in reported(anew, "DVL401")] == [(8, []), (10, []), (12, [])]


LOADERS = (
    HEAD
    + """
from torch.utils.data import DataLoader, TensorDataset
data = TensorDataset(torch.zeros(8, 3))
loaders = {"train": DataLoader(data, num_workers=2), "val": DataLoader(data, num_workers=2)}
model = nn.Linear(3, 1).to("cuda")
for phase in ("train", "val"):
    for (images,) in loaders[phase]:
        model(images.to("cuda"))
"""
)


def test_loaders_whose_batches_are_copied_at_one_place_are_one_finding_with_one_fix() -> None:
    alone = found(LOADERS, "DVL301")
    (finding,) = reported(LOADERS, "DVL301")
    assert len(alone) == 2
    assert also(finding) == [6]
    assert finding.fix is not None
    assert sorted(edit.content for edit in finding.fix.edits) == [
        "DataLoader(data, num_workers=2, pin_memory=True)",
        "DataLoader(data, num_workers=2, pin_memory=True)",
        'images.to("cuda", non_blocking=True)',
    ]


MADE = (
    HEAD
    + "class M(nn.Module):\n  def forward(self, n, device):\n    x = torch.zeros(n).to(device)\n"
    + "    y = torch.{}(n).to(device)\n    return x, y\n"
)
"""A module, in which creations are hints to all."""


def test_the_hints_of_a_rule_are_one_for_the_run() -> None:
    (finding,) = reported(MADE.format("ones"))
    assert (finding.code, finding.span.row, also(finding)) == ("DVL203", 5, [6])
    assert finding.message.endswith(" (1 more of DVL203)")
    assert finding.help.endswith("; `--extend-select DVL203` tells of each place")
    assert finding.fix is not None
    assert [edit.content for edit in finding.fix.edits if edit.content] == [
        "torch.zeros(n, device=device)",
        "torch.ones(n, device=device)",
    ]
    found = [*check_source(MADE.format("ones"), "a.py"), *check_source(MADE.format("ones"), "b.py")]
    (finding,) = summarized(found)
    assert finding.message.endswith(" (3 more of DVL203, in 2 files)")
    # an edit is one of its own file
    assert finding.fix is not None
    assert len([edit for edit in finding.fix.edits if edit.content]) == 2


@pytest.mark.parametrize("aside", ["examples/a.py", "datasets/a.py", "onnx/a.py"])
def test_what_stands_for_the_others_is_what_the_project_is_there_for(aside: str) -> None:
    """Of those that are equally grave: what costs each step is shown wherever it is."""
    text = MADE.format("ones")
    for names in ((aside, "net.py"), ("net.py", aside)):
        (finding,) = summarized([found for name in names for found in check_source(text, name)])
        assert finding.filename == "net.py"


COPIED = (
    HEAD
    + """
class {0}(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.prefix = torch.arange({1}).long()

    def forward(self, x):
        return x + self.prefix.to(x.device)
"""
)


def test_what_is_said_of_copies_of_a_class_is_one_finding() -> None:
    """Seen in P-tuning-v2: 17 copies of one class."""

    def run(*classes: tuple[str, str], select: tuple[str, ...] = ()) -> list[Finding]:
        config = Config(rule_layers=(RuleLayer(select),)) if select else Config()
        texts = ((f"{number}.py", COPIED.format(*one)) for number, one in enumerate(classes))
        return summarized([found for file, text in texts for found in check_source(text, file, config)])

    copies = ("First", "n"), ("Second", "n"), ("Third", "n")
    (finding,) = run(*copies)
    assert (finding.code, finding.severity) == ("DVL104", Severity.INFO)
    assert "`First.to()`" in finding.message
    assert finding.message.endswith(" (2 more of DVL104, in 3 files)")
    assert finding.help.endswith("; `--extend-select DVL104` tells of each place")
    assert [place.filename for place in finding.related if place.label == "also here"] == ["1.py", "2.py"]
    # who selects the rule has each
    assert len(run(*copies, select=("DVL104",))) == 3


def test_hints_of_other_rules_stay_alone() -> None:
    text = (
        MADE.format("ones")
        .replace("(self, n, device)", "(self, n, z, device, path)")
        .replace("return x, y", "return x, y, z.load_state_dict(torch.load(path))")
    )
    assert [(one.code, also(one)) for one in reported(text)] == [("DVL203", [6]), ("DVL604", [])]


def test_who_selects_a_rule_has_each_of_its_hints() -> None:
    assert [(one.span.row, also(one)) for one in reported(MADE.format("zeros"), "DVL203")] == [(5, []), (6, [])]


CUDA = HEAD + "def f(x, y):\n    return x.cuda(), y.cuda()\ndef g(x):\n    return x.to('cuda')\n"
CHOSEN = CUDA + 'device = "cuda" if torch.cuda.is_available() else "cpu"\n'


def test_what_defeats_a_choice_is_one_hint_of_each_rule() -> None:
    first, second = reported(CHOSEN)
    assert (first.code, str(first.severity), also(first)) == ("DVL601", "info", [4])
    assert first.message.endswith(" (1 more of DVL601)")
    assert first.help.endswith("; `--extend-select DVL601` tells of each place")
    assert (second.code, str(second.severity), also(second)) == ("DVL602", "info", [])


def test_what_defeats_choices_is_one_hint_of_each_rule_for_the_run() -> None:
    first, second = summarized([*check_source(CHOSEN, "a.py"), *check_source(CHOSEN, "b.py")])
    assert first.message.endswith(" (3 more of DVL601, in 2 files)")
    assert [place.filename for place in first.related] == ["", "b.py", "b.py"]
    assert second.message.endswith(" (1 more of DVL602, in 2 files)")


def test_who_selects_or_grades_a_rule_is_told_of_each_place_for_cuda_alone() -> None:
    assert reported(CUDA) == []
    assert [(one.span.row, str(one.severity)) for one in reported(CUDA, "DVL601")] == [(4, "info"), (4, "info")]
    config = Config(severity=(("DVL601", Severity.ERROR),))
    graded = summarized(check_source(CUDA, config=config))
    assert [(one.code, str(one.severity)) for one in graded] == [("DVL601", "error"), ("DVL601", "error")]


def test_warnings_stay_alone() -> None:
    twice = HEAD + "def f(a: torch.Tensor):\n    a.cuda()\n    a.cuda()\n    return a\n"
    assert [(one.code, one.span.row) for one in reported(twice)] == [("DVL102", 4), ("DVL102", 5)]


def test_a_fix_that_touches_the_same_text_waits_for_the_next_time() -> None:
    nested = MADE.format("ones").replace("torch.zeros(n)", "torch.zeros(int(torch.zeros(n).to(device)))")
    nested = nested.replace("y = torch.ones(n).to(device)", "y = n")
    (finding,) = reported(nested)
    assert also(finding) == [5]
    assert finding.fix == found(nested, "DVL203")[0].fix
