"""Which lines copy and wait while a suite runs, in one process of pytest."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import _pytest

from devlint.auditor.listeners import counters
from devlint.auditor.session import Backend, Session, Settings
from devlint.config.messages import leads_out
from devlint.record import Event
from devlint.report.audit.table import Cost, direction
from devlint.source.file_kinds import is_of_tests

_COUNTED = ("H2D", "D2H", "sync")
_PYTEST = os.path.dirname(_pytest.__file__) + os.sep
Row = tuple[str, str, int, int, int]
"""What a line did: the direction, its file (empty for all that tests do themselves), its number; calls and bytes."""


@dataclass(frozen=True, slots=True)
class Line:
    """The sum of what a line did of one kind."""

    direction: str
    file: str
    row: int
    calls: int
    bytes: int

    def weight(self) -> float:
        """What lines are sorted by, as in the report of an audit."""
        return Cost(self.calls, self.bytes).weight()


class Recorder:
    """Counts from the moment at which torch is there; ``root`` is the directory of the suite."""

    def __init__(self, backend: Backend, root: str) -> None:
        self._root = root
        self._started_by = os.path.abspath(getattr(sys.modules["__main__"], "__file__", None) or os.devnull)
        self._session = Session(Settings(key=backend.key, kernels=backend.kernels, simulated=True, roots=(root,)))
        self._session.start(counters(self._session))
        self.frames = self._session.frames

    def rows(self) -> list[Row]:
        """What was counted so far."""
        calls: Counter[tuple[str, str, int]] = Counter()
        sizes: Counter[tuple[str, str, int]] = Counter()
        for event in self._session.ledger.events():
            blamed = self._blamed(event)
            if direction(event) in _COUNTED and blamed is not None:
                key = (direction(event), *blamed)
                calls[key] += event.calls
                sizes[key] += event.bytes
        return [(*key, number, sizes[key]) for key, number in calls.items()]

    def _blamed(self, event: Event) -> tuple[str, int] | None:
        """The line: that of a library where a test called it, so that a package that is installed has lines, too.

        What pytest reads to show a failure is nobody's; what it reads to compare is the test's.  The program that runs
        pytest, such as its console script, does nothing itself.
        """
        frame, via = event.frame, event.via
        if frame is not None and frame.file == self._started_by:
            frame = None
        if via is not None and via.file.startswith(_PYTEST):
            if frame is None:
                return None
            via = None
        if frame is None or self._is_of_tests(frame.file):
            frame = via
        return (frame.file, frame.line) if frame is not None and not self._is_of_tests(frame.file) else ("", 0)

    def _is_of_tests(self, file: str) -> bool:
        try:
            relative = os.path.relpath(file, self._root)
        except ValueError:  # another drive of Windows
            return is_of_tests(file)
        return is_of_tests(file if leads_out(relative) else relative)


def summed(rows: Iterable[Row]) -> list[Line]:
    """The lines of several processes, the costliest first."""
    calls: Counter[tuple[str, str, int]] = Counter()
    sizes: Counter[tuple[str, str, int]] = Counter()
    for way, file, row, number, size in rows:
        calls[way, file, row] += number
        sizes[way, file, row] += size
    found = [Line(*key, number, sizes[key]) for key, number in calls.items()]
    return sorted(found, key=lambda line: (-line.weight(), line.file, line.row, line.direction))
