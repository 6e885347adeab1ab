"""What the audit does when something is raised while it is at work."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

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
