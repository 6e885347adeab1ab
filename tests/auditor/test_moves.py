"""Moves that moved nothing, on the CPU: its tensors are there already."""

from __future__ import annotations

import os
from collections.abc import Callable

import torch
from torch import nn

from devlint.auditor.recorder.moves import Moves
from devlint.auditor.recorder.uncompiled import Uncompiled
from devlint.auditor.session import Session, Settings
from devlint.record import Ending, Event
from tests.growth import calls


def seen(work: Callable[[], object]) -> list[Event]:
    session = Session(Settings(key="CPU", roots=(os.path.dirname(__file__),)))
    session.start([Moves(session), Uncompiled()])
    try:
        work()
    finally:
        session.stop()
    assert not session.failure
    session.ledger.settle(session.ledger.take(), "setup", step=False)
    return list(session.process(Ending()).events)


def facts(events: list[Event]) -> list[tuple[object, ...]]:
    return sorted((event.kind, event.name, event.subject, event.target, event.calls) for event in events)


def test_methods_that_return_their_tensor() -> None:
    tensor = torch.ones(2)

    def work() -> None:
        for _ in range(3):
            assert tensor.to("cpu") is tensor
        tensor.cpu()
        tensor.to(torch.zeros(1))
        tensor.to(device=torch.device("cpu"), dtype=torch.float32)

    found = seen(work)
    assert facts(found) == [("move", "cpu", "tensor", "cpu", 1)] + [
        ("move", "to", "tensor", "cpu", calls) for calls in (1, 1, 3)
    ]
    assert all(event.frame is not None and event.frame.file == __file__ for event in found)


def test_what_names_no_device_or_does_something_is_no_such_move() -> None:
    def work() -> None:
        tensor = torch.ones(2)
        tensor.to(torch.float32), tensor.to(dtype=torch.float32), tensor.to(torch.float64)
        tensor.to("cpu", torch.float64), tensor.to("cpu", copy=True), tensor.to("meta")
        nn.Linear(2, 2).to(torch.float32), nn.ReLU().to("cpu"), nn.Linear(2, 2).to("meta")
        nn.Linear(2, 2).to("cpu", torch.float64)

    assert seen(work) == []


def test_modules_count_once_and_not_by_tensor() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    assert facts(seen(lambda: model.to("cpu"))) == [("move", "to", "module", "cpu", 1)]
    assert facts(seen(lambda: model.cpu())) == [("move", "cpu", "module", "cpu", 1)]


def test_what_torch_itself_calls_is_not_the_scripts() -> None:
    model = nn.Linear(2, 2)
    optimizer = torch.optim.Adam(model.parameters())

    def work() -> None:
        model(torch.ones(1, 2)).sum().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.load_state_dict(optimizer.state_dict())

    assert seen(work) == []


def test_overridden_methods_keep_their_meaning() -> None:
    class Special(torch.Tensor):
        def to(self, *args: object, **kwargs: object) -> object:
            return "special"

    class Wrapped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def to(self, *args: object, **kwargs: object) -> Wrapped:
            self.asked = True
            return super().to(*args, **kwargs)

    def work() -> None:
        assert torch.ones(1).as_subclass(Special).to("cpu") == "special"
        module = Wrapped()
        module.to("cpu")
        assert module.asked

    assert facts(seen(work)) == [("move", "to", "module", "cpu", 1)]


def test_function_modes_and_subclasses_see_the_method_by_its_name() -> None:
    from torch.overrides import TorchFunctionMode

    found = []

    class Mode(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            found.append(function)
            return function(*args, **(kwargs or {}))

    class Special(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            return "handled" if function is torch.Tensor.to else NotImplemented

    def work() -> None:
        with Mode():
            torch.ones(1).to("cpu")
        assert torch.Tensor.to in found
        assert torch.Tensor._make_subclass(Special, torch.ones(1)).to("cpu") == "handled"

    seen(work)


def test_uninitialized_parameters_can_be_moved() -> None:
    def work() -> None:
        nn.LazyLinear(2).to("cpu").cpu()
        nn.LazyLinear(2).weight.to("cpu")

    seen(work)
    nn.LazyLinear(2).to("cpu")


def test_compiled_code_stays_in_one_graph() -> None:
    import torch._dynamo

    def function(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.to("cpu").to(torch.float64).cpu() + 1

    def work() -> None:
        explained = torch._dynamo.explain(function)(torch.ones(3))
        assert (explained.graph_count, explained.graph_break_count) == (1, 0)
        compiled = torch.compile(function, backend="eager", fullgraph=True)
        assert compiled(torch.ones(3)).tolist() == [2, 2, 2]

    assert seen(work) == []


def test_script_and_trace_work() -> None:
    def work() -> None:
        model = nn.Linear(2, 2)
        torch.jit.trace(lambda tensor: tensor.to("cpu") + 1, torch.ones(2))(torch.ones(2))
        scripted = torch.jit.script(model)
        scripted.to("cpu")
        scripted(torch.ones(1, 2))

    seen(work)


def test_afterwards_everything_is_as_before() -> None:
    before = [vars(torch.Tensor).get("to"), vars(nn.Module)["to"], vars(torch.Tensor).get("cpu")]
    seen(lambda: None)
    assert [vars(torch.Tensor).get("to"), vars(nn.Module)["to"], vars(torch.Tensor).get("cpu")] == before


def test_a_call_costs_two_more() -> None:
    """That is far less than a microsecond."""
    tensor = torch.ones(2)

    def work() -> None:
        for _ in range(2_000):
            tensor.to(torch.float32)

    without, inside = calls(work), []
    seen(lambda: inside.append(calls(work)))
    assert inside[0] - without <= 2 * 2_000
