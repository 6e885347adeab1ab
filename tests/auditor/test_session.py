"""What the audit does when something is raised while it is at work."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils.data import DataLoader, TensorDataset

from devlint.auditor.listeners import listeners
from devlint.auditor.session import Session, Settings

SIGNAL = signal.SIGTERM


class Late(Exception):
    """What a handler raises."""


def handle(number: int, frame: object) -> None:
    raise Late


class Handler:
    def __call__(self, number: int, frame: object) -> None:
        raise Late

    def method(self, number: int, frame: object) -> None:
        raise Late


def work(session: Session) -> None:
    try:
        signal.raise_signal(SIGNAL)
    except Exception as error:
        session.fail(error)


@pytest.mark.parametrize("handler", [handle, Handler(), Handler().method], ids=["function", "object", "method"])
def test_what_a_signal_handler_raises_is_the_scripts(handler: Callable[..., None]) -> None:
    session = Session(Settings())
    session.start([])
    before = signal.signal(SIGNAL, handler)
    try:
        with pytest.raises(Late):
            work(session)
    finally:
        signal.signal(SIGNAL, before)
    assert session.alive
    assert not session.failure


def test_a_failure_of_the_audit_goes_no_further(capsys: pytest.CaptureFixture[str]) -> None:
    session = Session(Settings())
    session.start([])
    try:
        raise Late("of its own")
    except Exception as error:
        session.fail(error)
    assert not session.alive
    assert capsys.readouterr().err == (
        "devlint: the audit failed and was switched off, the script runs on: Late: of its own\n"
    )


class Heard(TorchFunctionMode):
    """Takes down what is called."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[object] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls.append(func)
        return func(*args, **(kwargs or {}))


class Listening(torch.Tensor):
    """A tensor that does so."""

    calls: ClassVar[list[object]] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.calls.append(func)
        return super().__torch_function__(func, types, args, kwargs)


def train(model: nn.Module, data: torch.Tensor) -> None:
    for (batch,) in DataLoader(TensorDataset(data), batch_size=2):
        loss = model(batch.to("cpu").cpu()).sum()
        loss.backward()
        loss.detach().item()
    model.to("cpu")


def heard() -> tuple[list[str], list[str]]:
    model, data = nn.Sequential(nn.Linear(4, 3), nn.ReLU()), torch.ones(4, 4)
    with Heard() as mode:
        train(model, data)
    Listening.calls.clear()
    train(model, data.as_subclass(Listening))
    assert torch.Tensor.to in mode.calls  # as who handles a function knows it
    assert torch.Tensor.to in Listening.calls
    return [call.__name__ for call in mode.calls], [call.__name__ for call in Listening.calls]  # type: ignore[attr-defined]  # functions


def test_what_the_audit_asks_of_tensors_is_not_heard() -> None:
    before = heard()
    session = Session(Settings(key="CPU"))
    session.start(listeners(session))
    try:
        during = heard()
    finally:
        session.stop()
    assert not session.failure
    assert during == before
