"""DVL106: whom the move of a parameter concerns."""

from __future__ import annotations

import pytest

from devlint.check.analysis import check_source
from devlint.rules.subsumption import summarized

TEXT = """\
import torch
from torch import nn

KEPT = {{}}

class Windows({base}):
    def window(self, n, x):
        {target} = nn.Parameter(torch.hann_window(n), requires_grad={grad}).to("cuda")
        return {target} * x
"""


@pytest.mark.parametrize(
    ("base", "target", "grad", "told"),
    [
        ("object", "KEPT[n]", False, []),
        ("object", "self.kept", False, []),
        ("object", "self.kept", True, ["DVL106"]),
        ("nn.Module", "self.kept", False, ["DVL106"]),
    ],
)
def test_what_collects_nothing_is_registered_by_modules_alone(
    base: str, target: str, grad: bool, told: list[str]
) -> None:
    """Seen in SingingVocoders, which keeps windows in a dictionary."""
    found = summarized(check_source(TEXT.format(base=base, target=target, grad=grad), "windows.py"))
    assert [one.code for one in found if one.code == "DVL106"] == told
