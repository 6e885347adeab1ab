"""What DVL103 advises, where a fixture cannot show it."""

from __future__ import annotations

import ast

import pytest

from devlint import device
from devlint.check.analysis import check_source
from devlint.config.schema import Config, RuleLayer
from devlint.finding import Finding
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


BEFORE = "create it on the device of {}, handed over as an argument if need be"


@pytest.mark.parametrize(
    ("again", "told"),
    [
        ("", "create it there: `torch.ones(..., device=y.device)`"),
        ("y = y.float()", BEFORE.format("`y`")),
        ("for _ in w: y = y + 1", BEFORE.format("`y`")),
    ],
)
def test_a_name_that_is_bound_anew_before_they_meet_says_nothing_of_the_creation(again: str, told: str) -> None:
    function = f"""
def combine(w, where):
    y = torch.zeros(3).to(where.device) if w else torch.zeros(3)
    mask = torch.ones(3)
    {again}
    return y * mask
"""
    (help_,) = (found.help for found in _asked(function))
    assert help_ == told


def test_a_list_that_becomes_a_tensor_has_no_device_before() -> None:
    function = """
def collect(rows, w, where):
    y = w.to(where.device)
    if rows:
        y = y.cpu()
    kept = [y]
    for row in rows:
        if row:
            kept.append(torch.ones(3))
        else:
            kept.append(y)
    kept = torch.stack(kept)
    return kept, kept.shape
"""
    (found,) = _asked(function)
    assert found.help == BEFORE.format("what else is in `kept`")


def _asked(function: str) -> list[Finding]:
    """What DVL103 tells of a function those who select it."""
    return check_source("import torch\n" + function, config=Config(rule_layers=(RuleLayer(select=("DVL103",)),)))


PRODUCT = """
import torch
from torch import nn

class Grid(nn.Module):
    def forward(self, x):
        rows = torch.arange(x.shape[2], dtype=torch.{dtype})[:, None]
        grid = {product}
        return torch.cat([x, grid.float().repeat(x.shape[0], 1, 1, 1)], dim=1)
"""


@pytest.mark.parametrize(
    ("dtype", "product", "made_there"),
    [
        ("int32", "rows @ rows.t()", False),
        ("int64", "torch.matmul(rows, rows.t())", False),
        ("int64", "rows.mm(rows.t())", False),
        ("int64", "rows.float() @ rows.float().t()", True),
        ("float32", "rows @ rows.t()", True),
        ("int64", "rows * rows.t()", True),
    ],
)
def test_integers_are_not_created_where_no_matrices_of_them_are_multiplied(
    dtype: str, product: str, made_there: bool
) -> None:
    (finding,) = check_source(PRODUCT.format(dtype=dtype, product=product))
    assert finding.code == "DVL103"
    assert (finding.fix is not None) is made_there
    expected = "create it there" if made_there else "move what comes of it there, `.to(x.device)`"
    assert expected in str(finding.help)


POWERS = """
class Basis(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.basis = torch.nn.Parameter(torch.ones(3, 3))

    def forward(self, x):
        powers = torch.zeros({powers})
        for i in range(3):
            powers[:, :, i] = x**i
        values = torch.zeros(4, 4)
        for i in range(3):
            values += self.basis[0, i] * powers[:, :, i]
        return values
"""


def test_a_slice_has_dimensions_whatever_stands_beside_it() -> None:
    """Seen in Smithers: both are made on the CPU, and the product raises before what comes of it meets the other."""
    rows = [found.span.row for found in _asked(POWERS.format(powers="4, 4, 3"))]
    assert rows == [9, 12]
    assert [found.span.row for found in _asked(POWERS.format(powers="4, 4, 3, device=x.device"))] == [12]


@pytest.mark.parametrize(
    ("signature", "told"),
    [
        ("mask, x", "mask.device"),
        ("mask=None, *, x", "x.device"),
        ("mask=None, *, x: torch.Tensor", "x.device"),
        # it may be a number, or an object of any kind
        ("mask=None, *, x: float | torch.Tensor", ""),
        ("mask=None, *, x: Image", ""),
    ],
)
def test_what_may_be_none_says_no_device(signature: str, told: str) -> None:
    """Seen in CT-CLIP: the mask is there only further down, where a function says so."""
    method = f"""
    def forward(self, {signature}):
        logits = torch.randn(x.shape[0], 3)
        if exists(mask):
            logits = logits.masked_fill(~mask, 0)
        return logits
"""
    (help_,) = [str(finding.help) for finding in _asked(HEAD + method)]
    assert (f"device={told})" in help_) if told else (".device)" not in help_)


def test_what_is_said_to_exist_has_a_device() -> None:
    method = """
    def forward(self, mask=None):
        if exists(mask):
            return torch.randn(2, 3).masked_fill(~mask, 0)
"""
    assert helps(method) == ["create it there: `torch.randn(..., device=mask.device)`"]
