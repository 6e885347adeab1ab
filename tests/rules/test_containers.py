"""What DVL105 and DVL106 advise about modules and parameters in plain containers."""

from __future__ import annotations

import pytest

from devlint.check.analysis import check_source
from devlint.config.schema import Config, RuleLayer
from devlint.finding import Finding

HEAD = """
import torch
from torch import nn

class Net(nn.Module):
"""


def check(code: str, body: str, selected: bool = False) -> list[Finding]:
    """What one rule says about a class, by default or if it is selected."""
    config = Config(rule_layers=(RuleLayer((code,)),)) if selected else Config()
    return [found for found in check_source(HEAD + body, config=config) if found.code == code]


@pytest.mark.parametrize(
    ("kept", "listed"),
    [
        ("self.factors = []\n        self.factors.append({})", True),
        ("self.factors = []\n        factor = {}\n        self.factors.append(factor)", True),
        ("self.factors = [{} for _ in range(2)]", True),
        ("self.factor = {}", False),
    ],
)
def test_a_parameter_in_a_plain_list_needs_another_list(kept: str, listed: bool) -> None:
    made = kept.format("nn.Parameter(torch.ones(2)).to(device)")
    body = f"    def __init__(self, device):\n        super().__init__()\n        {made}\n"
    (found,) = check("DVL106", body)
    rest = ", in an `nn.ParameterList`: the plain list `self.factors` registers nothing" if listed else ""
    assert found.help == f"move the data first, and make it a parameter then{rest}"
