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
