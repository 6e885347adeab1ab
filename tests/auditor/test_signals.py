"""Who hears of the events of a session, and who answers its questions."""

from __future__ import annotations

import pytest

from devlint.auditor.session import Listener, Session, Settings, Signals


class Watch(Listener):
    """Hears of forwards and of the ends of steps, and knows of one loader."""

    def __init__(self, heard: list[str], name: str = "") -> None:
        self._heard = heard
        self._name = name

    def on_forward(self) -> None:
        self._heard.append(f"forward{self._name}")

    def on_step_end(self) -> None:
        self._heard.append(f"step{self._name}")

    def loader_of(self, tensor: object) -> int | None:
        return 3


EVENTS = [name for name, known in vars(Signals()).items() if isinstance(known, tuple)]


def emit(signals: Signals, *events: str) -> None:
    for event in events:
        for handle in getattr(signals, event):
            handle()


def test_only_what_is_overridden_is_subscribed() -> None:
    heard: list[str] = []
    signals = Signals()
    signals.subscribe(Watch(heard))
    signals.subscribe(Listener())
    assert {event for event in EVENTS if getattr(signals, event)} == {"forward", "step_end"}
    emit(signals, "forward", "pass_end", "step_end", "move")
    assert heard == ["forward", "step"]


def test_several_hear_in_the_order_in_which_they_subscribed() -> None:
    heard: list[str] = []
    signals = Signals()
    for name in ("1", "2"):
        signals.subscribe(Watch(heard, name))
    emit(signals, "step_end", "forward")
    assert heard == ["step1", "step2", "forward1", "forward2"]


def test_every_event_has_a_handler_and_every_handler_an_event() -> None:
    assert {f"on_{event}" for event in EVENTS} == {name for name in vars(Listener) if name.startswith("on_")}


def test_without_anybody_who_answers_nothing_is_known() -> None:
    signals = Signals()
    assert signals.loader_of("tensor") is None
    assert signals.place_of_thread() == 0
    assert not signals.places_copying(1)
    assert not signals.is_optimized("parameter")
    assert signals.explain(ValueError()) is None


def test_the_listener_that_overrides_a_question_answers_it() -> None:
    signals = Signals()
    signals.subscribe(Watch([]))
    signals.subscribe(Listener())
    assert signals.loader_of("tensor") == 3
    assert signals.place_of_thread() == 0


class Broken(Watch):
    def install(self) -> None:
        raise ValueError("a bug")


def test_a_session_subscribes_what_could_be_installed_until_it_stops(capsys: pytest.CaptureFixture[str]) -> None:
    heard: list[str] = []
    session = Session(Settings())
    session.start([Watch(heard, "1"), Broken(heard, "2")])
    emit(session.signals, "forward")
    assert heard == ["forward1"]
    assert session.signals.loader_of("tensor") == 3
    session.stop()
    emit(session.signals, "forward")
    assert heard == ["forward1"]
    assert session.signals.loader_of("tensor") is None
    assert "a bug" in capsys.readouterr().err
