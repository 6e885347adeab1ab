"""Observing calls in this process: of Python's own events where there are any, else of those that profilers get."""

from __future__ import annotations

import contextlib
import dis
import functools
import hashlib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import CodeType, FrameType

from devlint.auditor.calls.monitoring import Monitor, Returned, Started
from devlint.auditor.calls.observer import CallObserver
from devlint.auditor.session import Session, Settings
from devlint.record import Ending, Process, Record


class Profiling(Monitor):
    """Tells of calls by ``sys.setprofile``: too slow for anything but tests, and there before Python 3.12."""

    def __init__(self, started: Started, returned: Returned) -> None:
        super().__init__(started, returned)
        self._silent: set[CodeType] = set()

    def begin(self) -> bool:
        sys.setprofile(self._hear)
        return True

    def forget(self, held: Mapping[str, object]) -> None:
        """Python itself writes them back after each call of a function that profiles."""

    def again(self) -> None:
        self._silent.clear()

    def end(self) -> None:
        sys.setprofile(None)

    def _hear(self, frame: FrameType, event: str, value: object) -> None:
        code = frame.f_code
        # a generator is resumed by a call, too
        if event == "call" and code not in self._silent and frame.f_lasti <= _beginning(code):
            if not self._started(code, frame):
                self._silent.add(code)
        elif event == "return":
            self._returned(code, value)


@functools.cache
def _beginning(code: CodeType) -> int:
    """The instruction from which a function's own code goes on."""
    resumes = (found.offset for found in dis.get_instructions(code) if found.opname == "RESUME")
    return next(resumes, 0)


@contextlib.contextmanager
def observing(folder: str) -> Iterator[Session]:
    """A session that does nothing but look at calls of what lies in a folder."""
    session = Session(Settings(simulated=True, roots=(folder,)))
    native = hasattr(sys, "monitoring")
    session.start([CallObserver(session) if native else CallObserver(session, Profiling)])
    try:
        yield session
    finally:
        session.stop()


def seen_of(session: Session, file: str, text: str, device: str = "cuda:0") -> Record:
    """The record of what was seen of a file, in a run that used a device."""
    process: Process = replace(session.process(Ending()), device=device)
    return Record(simulated=True, processes=(process,), digests={file: hashlib.sha256(text.encode()).hexdigest()})
