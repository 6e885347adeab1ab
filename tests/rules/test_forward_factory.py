"""What DVL103 advises, where a fixture cannot show it."""

from __future__ import annotations

import ast

import pytest

from devlint import device
from devlint.check.analysis import check_source
from devlint.rules.placement.operands.forward_factory import ForwardFactoryWithoutDevice
from devlint.sites.base import Operand, Scope
from devlint.sites.placement import Operation, OperationKind
from devlint.source.tree import Source

HEAD = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, odd):
        super().__init__()
        self.odd = odd
        self.head = nn.Linear(8, 8)
        self.register_buffer("steps", torch.ones(1, 4))
"""


def helps(method: str) -> list[str]:
    """What DVL103 advises in a method of the module."""
    found = [found for found in check_source(HEAD + method) if found.code == "DVL103"]
    return [finding.help or "" for finding in found]


@pytest.mark.parametrize(
    ("made", "told"),
    [
        ("torch.BoolTensor(x == 0)", "`x == 0`"),
        ("torch.FloatTensor(x > 0.5)", "`(x > 0.5).float()`"),
        ("torch.LongTensor(x[0])", "`x[0].long()`"),
        ("torch.Tensor(-x)", "`(-x).float()`"),
    ],
)
def test_a_constructor_around_a_tensor_goes_away(made: str, told: str) -> None:
    method = f"""
    def forward(self, x: torch.Tensor):
        return self.head(x) * {made}
"""
    (help_,) = helps(method)
    assert help_ == f"drop the constructor, which raises for a tensor that is on an accelerator: use {told}"


@pytest.mark.parametrize("made", ["torch.FloatTensor([0.1, 0.2])", "torch.LongTensor(x.shape)"])
def test_a_constructor_of_numbers_is_moved(made: str) -> None:
    method = f"""
    def forward(self, x: torch.Tensor):
        return self.head(x) * {made}
"""
    assert helps(method) == ["move it there: `.to(x.device)`"]


@pytest.mark.parametrize(
    "use", ["torch.arange(n, device=self.steps.device)", "torch.zeros(2, n)", "[1 for _ in range(n)]"]
)
def test_a_number_of_things_to_make_has_no_device(use: str) -> None:
    method = f"""
    def forward(self, n):
        made = {use}
        signal = self.steps * 2
        if self.odd:
            signal = torch.cat([signal, torch.zeros(1, 1)], dim=1)
        return signal, made
"""
    (help_,) = helps(method)
    assert "n.device" not in help_


@pytest.mark.parametrize(
    ("first", "party"),
    [("rows.append(y)", "what else is in `rows`"), ("rows = [y, y]", "`rows`"), ("rows[-1]", "`rows`")],
)
def test_a_list_has_no_device(first: str, party: str) -> None:
    """Rows on two devices may be put into one list, and joined."""
    source = Source.parse(f"{first}\ntorch.cat(rows)\ntorch.ones(1, 4)\n")
    assert isinstance(source, Source)
    join, made = (statement.value for statement in source.tree.body[1:] if isinstance(statement, ast.Expr))
    assert isinstance(join, ast.Call)
    stray = Operand(made, "made", device.IMPLIED_CPU, True, True, factory="torch.ones", factory_node=made)
    other = Operand(join.args[0], "rows", device.symbol("f:x", "x[0]", device.Role.INPUT), True, True)
    site = Operation(join, Scope(module=True), "torch.cat", OperationKind.OPERANDS, (stray, other))
    (report,) = ForwardFactoryWithoutDevice(source).judge(site)
    assert report.help == f"create it on the device of {party}, handed over as an argument if need be"
