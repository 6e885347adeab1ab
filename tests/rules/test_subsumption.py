"""One call gets one advice, and one cause is one finding."""

from __future__ import annotations

import pytest

from devlint.check.analysis import check_source
from devlint.config.schema import Config, RuleLayer
from devlint.finding import Finding

HEAD = "import torch\nfrom torch import nn\n"
TWICE = HEAD + "def f(n):\n    x = torch.zeros(n).cuda()\n    return x.cuda()\n"


def found(text: str, *codes: str) -> list[Finding]:
    return check_source(text, config=Config(rule_layers=(RuleLayer(codes),)))


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
    (finding,) = found(READ.format(""), "DVL401")
    assert (finding.span.row, [(place.span.row, place.label) for place in finding.related]) == (
        8,
        [(10, "also here"), (12, "also here")],
    )


def test_a_place_that_is_silenced_is_not_shown_beside_others() -> None:
    (finding,) = found(READ.format("  # devlint: ignore[DVL401]"), "DVL401", "DVL901")
    assert [place.span.row for place in finding.related] == [12]


def test_what_is_made_anew_in_between_is_another_value() -> None:
    anew = READ.format("").replace("work()\n        print", "loss = model(images.to(device)).sum()\n        print")
    assert told(anew, "DVL401") == [("DVL401", 8), ("DVL401", 10), ("DVL401", 12)]
