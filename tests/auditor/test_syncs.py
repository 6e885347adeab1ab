"""Explicit waits, and torch's warnings of others; the CUDA of these tests is a stand-in."""

from __future__ import annotations

import os
import pickle
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch

from devlint.auditor.recorder.attribution import Attribution
from devlint.auditor.recorder.syncs import Syncs
from devlint.auditor.recorder.syncwarnings import SyncWarnings
from devlint.auditor.recorder.waits import Waits
from devlint.auditor.session import Session, Settings
from devlint.record import Ending, Event


class Card:
    """What torch does with the mode: it warns when an operation waits."""

    def __init__(self) -> None:
        self.mode = 0

    def set_mode(self, mode: int | str) -> None:
        self.mode = {"default": 0, "warn": 1, "error": 2}.get(mode, mode)  # type: ignore[call-overload] # str or int
        if self.mode:
            warnings.warn("Synchronization debug mode is a prototype feature and does not yet", stacklevel=2)

    def wait(self) -> None:
        if self.mode == 2:
            raise RuntimeError("called a synchronizing CUDA operation")
        if self.mode == 1:
            warnings.warn("called a synchronizing CUDA operation (Triggered internally at x.cpp:1.)", stacklevel=2)


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> Card:
    card = Card()
    monkeypatch.setattr(torch._C, "_cuda_set_sync_debug_mode", card.set_mode, raising=False)
    monkeypatch.setattr(torch.cuda, "_lazy_call", lambda function: function())
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", card.set_mode)
    monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: card.mode)
    monkeypatch.setattr(torch.cuda, "synchronize", card.wait)
    monkeypatch.setattr(torch.cuda.Event, "synchronize", lambda self: card.wait())
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    return card


@contextmanager
def audited() -> Iterator[Session]:
    session = Session(Settings(key="CUDA", roots=(os.path.dirname(__file__),)))
    attribution, waits = Attribution(session), Waits(session)
    debug = SyncWarnings(session, attribution, waits)
    session.start([attribution, waits, debug, Syncs(session, waits, debug)])
    try:
        yield session
        assert not session.failure
    finally:
        session.stop()


def events(session: Session) -> list[Event]:
    session.ledger.settle(session.ledger.take(), "setup", step=False)
    return list(session.process(Ending()).events)


def names(session: Session) -> list[tuple[str, str, int]]:
    return sorted((event.kind, event.name, event.calls) for event in events(session))


@pytest.mark.usefixtures("card")
def test_explicit_waits_are_counted_once() -> None:
    with audited() as session:
        for _ in range(3):
            torch.cuda.synchronize()
        torch.cuda.Event.synchronize(None)
        torch.cuda.empty_cache()
        assert names(session) == [
            ("call", "torch.cuda.empty_cache", 1),
            ("sync", "torch.cuda.Event.synchronize", 1),
            ("sync", "torch.cuda.synchronize", 3),
        ]


def test_warnings_are_counted_and_reach_nobody(card: Card, capsys: pytest.CaptureFixture[str]) -> None:
    with audited() as session:
        for _ in range(3):  # the line is seen each time, not only the first as with Python's default
            card.wait()
        (event,) = events(session)
        assert (event.kind, event.name, event.calls, event.blocking) == ("sync", "synchronizing operation", 3, True)
        assert event.frame is not None
        assert event.frame.function in ("Card.wait", "wait")
    assert capsys.readouterr().err == ""
    assert card.mode == 0


@pytest.mark.parametrize("action", ["error", "always"])
def test_the_scripts_filters_neither_raise_nor_record(card: Card, action: str) -> None:
    with audited() as session:
        with warnings.catch_warnings(record=True) as recorded:
            warnings.simplefilter(action)
            card.wait()
            warnings.resetwarnings()
            card.wait()
            warnings.filterwarnings(action)
            card.wait()
        assert recorded == []
        card.wait()
        assert sum(event.calls for event in events(session)) == 4


def test_other_warnings_are_the_scripts(card: Card) -> None:
    with audited(), pytest.warns(UserWarning, match="mine"):
        warnings.warn("mine", stacklevel=1)


def test_a_script_that_sets_the_mode_keeps_it(card: Card) -> None:
    with audited() as session:
        assert torch.cuda.get_sync_debug_mode() == 0
        with pytest.warns(UserWarning, match="prototype"):
            torch.cuda.set_sync_debug_mode("warn")
        assert torch.cuda.get_sync_debug_mode() == 1
        with pytest.warns(UserWarning, match="called a synchronizing"):
            card.wait()
        with pytest.warns(UserWarning, match="prototype"):
            torch.cuda.set_sync_debug_mode("error")
        with pytest.raises(RuntimeError, match="synchronizing"):
            card.wait()
        torch.cuda.set_sync_debug_mode(0)
        assert torch.cuda.get_sync_debug_mode() == 0
        card.wait()
        assert sum(event.calls for event in events(session)) == 1


def test_filters_are_as_before_and_can_be_sent_to_another_process(card: Card) -> None:
    before = list(warnings.filters)
    with audited():
        first = warnings.filters[0]
        pattern = pickle.loads(pickle.dumps(first))[1]
        assert isinstance(pattern, re.Pattern)
        assert pattern.match("called a synchronizing CUDA operation (Triggered")
    assert list(warnings.filters) == before


def test_a_simulated_device_warns_of_nothing(card: Card) -> None:
    session = Session(Settings(key="PrivateUse1", simulated=True))
    debug = SyncWarnings(session, Attribution(session), Waits(session))
    session.start([debug])
    assert not debug.armed
    assert card.mode == 0
    session.stop()
