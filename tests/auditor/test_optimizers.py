"""Optimizers: made before the move, left with the state of before, or with parameters that are no longer used.

`meta` is the other device here: a move there and back needs none.
"""

from __future__ import annotations

import sys

import pytest
import torch
from torch import nn

from devlint.auditor.modules.optimizers import Optimizers
from tests.auditor.watching import seen, watching


@pytest.fixture
def _swapping():
    """`.to("meta")` keeps the parameters, as `.to("cuda")` does."""
    before = torch.__future__.get_swap_module_params_on_conversion()
    torch.__future__.set_swap_module_params_on_conversion(True)
    yield
    torch.__future__.set_swap_module_params_on_conversion(before)


@pytest.mark.usefixtures("_swapping")
def test_made_before_the_move() -> None:
    with watching(Optimizers) as session:
        net = nn.Sequential(nn.Linear(2, 2))
        made = sys._getframe().f_lineno + 1
        optimizer = torch.optim.Adagrad(net.parameters())
        net.half()
        moved = sys._getframe().f_lineno + 1
        net.to("meta")
        net(torch.ones(1, 2, device="meta", dtype=torch.float16)).sum().backward()
        with pytest.raises(RuntimeError):
            optimizer.step()
        (found,) = seen(session).optimizers
    assert (found.name, found.parameters) == ("Adagrad", 2)
    assert (found.made_on, found.stepped_on, found.state_on) == (("cpu",), ("meta",), ("cpu",))
    assert found.frame is not None
    assert found.moved is not None
    assert (found.frame.line, found.moved.line) == (made, moved)
    assert found.orphans == 0


def test_made_and_stepped_in_place() -> None:
    with watching(Optimizers) as session:
        net = nn.Linear(2, 2).to("cpu")
        optimizer = torch.optim.Adam(net.parameters())
        net(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        (found,) = seen(session).optimizers
    assert (found.made_on, found.stepped_on) == (("cpu",), ("cpu",))
    assert (found.moved, found.state_on, found.orphans) == (None, (), 0)


def test_parameters_that_their_module_has_replaced() -> None:
    with watching(Optimizers) as session:
        net = nn.Linear(2, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        net.weight = nn.Parameter(torch.ones(2, 2))
        net(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        (found,) = seen(session).optimizers
    # the weight is another one, the bias is not
    assert found.orphans == 1


def test_tied_parametrized_and_frozen_parameters_are_no_orphans() -> None:
    with watching(Optimizers) as session:
        one, other, third = nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2)
        other.weight = one.weight
        nn.utils.parametrizations.weight_norm(third)
        one.bias.requires_grad_(False)
        parameters = {id(p): p for net in (one, other, third) for p in net.parameters()}
        optimizer = torch.optim.SGD(list(parameters.values()), lr=0.1)
        optimizer.step()
        (found,) = seen(session).optimizers
    assert found.orphans == 0


def test_parameters_can_still_be_swapped() -> None:
    """torch refuses to swap tensors to which weak references exist."""
    with watching(Optimizers):
        net = nn.Linear(2, 2)
        torch.optim.SGD(net.parameters(), lr=0.1)
        torch.utils.swap_tensors(net.weight, nn.Parameter(torch.ones(2, 2)))
    assert net.weight.sum() == 4


def test_everything_is_put_back() -> None:
    before = (torch.optim.Optimizer.__init__, nn.Module._apply)
    with watching(Optimizers):
        assert torch.optim.Optimizer.__init__ is not before[0]
    assert (torch.optim.Optimizer.__init__, nn.Module._apply) == before
