"""What one run of a case showed: this is what claims judge."""

from __future__ import annotations

import ast
import os
import sys
import warnings
from dataclasses import dataclass, field
from functools import cache
from types import FrameType, TracebackType
from typing import Any

from torch import nn

from devlint.finding import Finding, Span
from devlint.record import Event, Frame, Loader, Process, Wrapper
from tests.running.cases import Case, Fixture
from tests.running.instrument import Key, expression, key_of, span_of, statement


@dataclass(frozen=True)
class Place:
    """A frame of the fixture in a traceback, and the span that was running."""

    frame: FrameType
    span: Span

    def meets(self, finding: Finding) -> bool:
        """Whether a part of what the finding underlines was running, or all of it."""
        return _meet(self.span, finding.span)

    @property
    def is_method_of_module(self) -> bool:
        """Whether a module of the fixture was running its own code: whoever called it is asked, too."""
        return isinstance(self.frame.f_locals.get("self"), nn.Module)


@dataclass(frozen=True)
class Failure:
    """The exception a run ended with, and where it passed through the fixture, outermost frame first."""

    error: BaseException
    places: tuple[Place, ...]

    @property
    def text(self) -> str:
        """Class and message."""
        return f"{type(self.error).__name__}: {self.error}"

    def is_in_statement(self, finding: Finding) -> bool:
        """Whether it passed through the statement that the finding is in."""
        first, last = finding.context.rows if finding.context else (0, 0)
        return any(first <= place.span.row <= last for place in self.places)

    @property
    def is_own(self) -> bool:
        """Whether the fixture itself gave up, and nothing that it called."""
        trace = self.error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        own = trace is not None and bool(self.places) and trace.tb_frame is self.places[-1].frame
        return own or isinstance(self.error, SystemExit) or type(self.error).__name__ == "Skipped"

    def is_at(self, finding: Finding) -> bool:
        """Whether it was raised by what the finding underlines.

        The innermost frame of the fixture must be there; frames inside of it may only be methods of modules, since a
        rule that reports a call of a module names the call.
        """
        for place in reversed(self.places):
            if place.meets(finding):
                return True
            if not place.is_method_of_module:
                return False
        return False


@dataclass
class Run:
    """One run of a case: what was called, what was seen, and how it ended.

    ``values`` are those of the watched expressions, in the order in which they were computed, by their position as
    ``ast`` counts, ``objects`` whatever was `self` in a function of the file.  ``left_out`` are findings whose code was
    left out of this run, or put right, since an earlier one has shown them.
    """

    fixture: Fixture
    case: Case
    call: str
    machine: str
    value: Any = None
    failure: Failure | None = None
    process: Process | None = None
    values: dict[Key, list[Any]] = field(default_factory=dict)
    entered: set[int] = field(default_factory=set)
    warnings: list[warnings.WarningMessage] = field(default_factory=list)
    namespace: dict[str, Any] = field(default_factory=dict)
    objects: list[Any] = field(default_factory=list)
    left_out: tuple[Finding, ...] = ()
    warned: list[tuple[int, str]] = field(default_factory=list)
    read_early: list[int] = field(default_factory=list)
    clocks: list[tuple[int, int]] = field(default_factory=list)
    collections: list[int] = field(default_factory=list)
    graphs: list[int] = field(default_factory=list)
    hidden: list[tuple[int, bool]] = field(default_factory=list)

    @property
    def rank(self) -> int:
        """The number of the process that this one played."""
        return int(os.environ.get("LOCAL_RANK", "0"))

    def row(self) -> int:
        """The innermost row of the fixture that is running."""
        frame = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename == str(self.fixture.path):
                return frame.f_lineno
            frame = frame.f_back  # type: ignore[assignment]  # none ends the loop
        return 0

    def node(self, finding: Finding) -> ast.expr | ast.stmt:
        """The expression that a finding underlines, or the statement around it; or what is assigned to it."""
        return _underlined(self.fixture, finding.span)

    def seen(self, node: ast.AST) -> list[Any]:
        """The values of a watched expression."""
        assert isinstance(node, ast.expr)
        return self.values.get(key_of(node), [])

    def events(self, finding: Finding, *kinds: str) -> list[Event]:
        """What the recorder counted on the rows that a finding underlines, of these kinds or of all.

        Where the recorder knows the expression (since Python 3.11), it must overlap what is underlined.
        """
        found = []
        for event in self.process.events if self.process else ():
            frame = event.frame
            if frame is None or frame.file != str(self.fixture.path) or (kinds and event.kind not in kinds):
                continue
            if _meet(self._span(frame), finding.span):
                found.append(event)
        return found

    def own_events(self) -> list[Event]:
        """What the recorder counted in the fixture."""
        events = self.process.events if self.process else ()
        return [event for event in events if event.frame and event.frame.file == str(self.fixture.path)]

    def own_loaders(self) -> list[tuple[int, Loader]]:
        """The loaders that the fixture made, by number."""
        loaders = self.process.loaders if self.process else ()
        return [(n, one) for n, one in enumerate(loaders) if one.frame and one.frame.file == str(self.fixture.path)]

    def loaders(self, finding: Finding) -> list[tuple[int, Loader]]:
        """Those that were made where the finding is, or of what it underlines."""
        return [(n, one) for n, one in self.own_loaders() if one.frame and self._is_at(one.frame, finding)]

    def wrappers(self, finding: Finding) -> list[Wrapper]:
        """The wrappers that were made where the finding is."""
        wrappers = self.process.wrappers if self.process else ()
        return [one for one in wrappers if one.frame and self._is_at(one.frame, finding)]

    def _is_at(self, frame: Frame, finding: Finding) -> bool:
        return frame.file == str(self.fixture.path) and _meet(self._span(frame), finding.span)

    def _span(self, frame: Frame) -> Span:
        if frame.column is None or frame.end_line is None:
            return Span(frame.line, 1, frame.line, 10_000)
        return span_at(self.fixture.lines, frame.line, frame.column, frame.end_line, frame.end_column or 0)


@cache
def _underlined(fixture: Fixture, span: Span) -> ast.expr | ast.stmt:
    around = statement(fixture.tree, fixture.lines, span)
    node = expression(fixture.tree, fixture.lines, span) or around
    assert node is not None, (fixture.name, span)
    is_target = isinstance(getattr(node, "ctx", None), ast.Store)
    return around.value if is_target and isinstance(around, ast.Assign) else node


def span_at(lines: list[str], row: int, offset: int, end_row: int, end_offset: int) -> Span:
    """A position of the running interpreter, as findings count."""
    return span_of(ast.Pass(lineno=row, col_offset=offset, end_lineno=end_row, end_col_offset=end_offset), lines)


def failure_of(error: BaseException, filename: str, lines: list[str]) -> Failure:
    """An exception as a failure."""
    places = []
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename == filename:
            places.append(Place(trace.tb_frame, _running(trace, lines)))
        trace = trace.tb_next
    return Failure(error, tuple(places))


def _running(trace: TracebackType, lines: list[str]) -> Span:
    positions = getattr(trace.tb_frame.f_code, "co_positions", None)
    if positions is not None:
        row, end_row, offset, end_offset = list(positions())[trace.tb_lasti // 2]
        if None not in (row, end_row, offset, end_offset):
            return span_at(lines, row, offset, end_row, end_offset)
    return Span(trace.tb_lineno, 1, trace.tb_lineno, 10_000)


def _meet(one: Span, other: Span) -> bool:
    ends_before = (one.end_row, one.end_column) <= (other.row, other.column)
    starts_after = (other.end_row, other.end_column) <= (one.row, one.column)
    return not ends_before and not starts_after
