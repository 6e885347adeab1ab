"""What only constructors ask for happens before anything was moved."""

from __future__ import annotations

import pytest

from devlint.check.analysis import check_source
from devlint.config.schema import Config, RuleLayer

SELECTED = Config((RuleLayer(extend_select=("DVL103",)),))
"""What is made to be measured is only for those who select the rule."""
TOKENIZER = """\
import torch
from torch import nn

class Tokenizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 8, 7), nn.MaxPool2d(3))

    def length(self, size):
        return self.forward(torch.zeros((1, 3, size, size))).shape[1]

    def forward(self, x):
        return self.layers(x)

class Classifier(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.tokenizer = Tokenizer()
        self.positions = nn.Parameter(torch.zeros(self.tokenizer.length(size)))
"""
FOUND = [(10, "DVL103")]


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ("", []),
        # an attribute of that name, which another class has
        ("class Text:\n    def shown(self):\n        return self.length\n", []),
        ("def later(tokenizer):\n    return tokenizer.length(32)\n", FOUND),
        ("def handed_on(tokenizer):\n    return map(tokenizer.length, [32, 64])\n", FOUND),
        ("class Sized(Tokenizer):\n    def size(self):\n        return self.length(32)\n", FOUND),
    ],
)
def test_a_method_that_only_constructors_call_runs_before_the_module_is_moved(
    more: str, found: list[tuple[int, str]]
) -> None:
    told = check_source(f"{TOKENIZER}\n{more}", config=SELECTED)
    assert [(finding.span.row, finding.code) for finding in told] == found


def test_a_method_that_nothing_calls_may_run_later() -> None:
    alone = TOKENIZER.partition("class Classifier")[0]
    assert [(finding.span.row, finding.code) for finding in check_source(alone, config=SELECTED)] == FOUND


GIVEN = """
import torch
from torch import nn

placed = torch.ones(4, 4).cuda()

class Net(nn.Module):
    def __init__(self, given):
        super().__init__()
        {}

    def forward(self, x):
        return self.weight + x

net = Net(torch.ones(4, 4))
net(placed)
"""


@pytest.mark.parametrize(
    ("held", "told"),
    [
        ("self.weight = nn.Parameter(placed)", []),
        ("self.weight = nn.Buffer(placed)", []),
        ('self.register_buffer("weight", placed)', []),
        ("self.weight = nn.Parameter(torch.ones(4, 4))", ["DVL101"]),
        ("given = torch.ones(4, 4); self.weight = nn.Parameter(given)", ["DVL101"]),
        ("self.weight = nn.Parameter(placed); self.part = nn.Linear(4, 4)", ["DVL101"]),
    ],
)
def test_a_module_that_finds_its_tensors_is_where_they_are(held: str, told: list[str]) -> None:
    """Found by random programs."""
    found = check_source(GIVEN.format(held.replace("; ", "\n        ")))
    assert [one.code for one in found if one.code == "DVL101"] == told
