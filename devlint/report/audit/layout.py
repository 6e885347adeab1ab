"""Lays tables out for a terminal: the code beside the numbers where there is room, else above them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from devlint.record import WARM_UP
from devlint.report.audit.code import Code
from devlint.report.audit.table import STAGED, Cost, Group, Row, Table
from devlint.report.terminal import BLUE, BOLD, Paint, cells
from devlint.report.wording import between, duration, number, plural, size

TITLES = {
    "train": "Training",
    "eval": "Evaluation",
    "inference": "Inference",
    "setup": "Set-up",
    "between": "Between loops",
    "teardown": "Tear-down",
}
"""What the phases are called."""
_MOST = {"train": 15}
_MOST_ELSEWHERE = 5
"""So many rows of a phase are shown; the rest is summed up in a line."""
_ENOUGH = 28
"""With fewer columns left for it the code stands above the numbers."""
_READABLE = 16
"""A beginning of code that is shorter says nothing."""
_GUTTER = 6
_DEEPER = 4
"""So much further in stand the numbers below a line of code."""
NOWHERE = "in no line of Python"
"""Where something happened that no code asked for."""
_LEGEND = {
    "H2D": "to a device",
    "D2H": "from a device",
    "D2D": "between devices",
    "sync": "the host waited for the device",
    "pin": "copied to pinned memory",
    "call": "a call that costs by itself",
}
_NAMES = ("", "calls", "bytes", "blocked", "copying")
"""What stands above the columns of figures."""


def lay_out(tables: Sequence[Table], code: Code, paint: Paint, width: int) -> Iterator[str]:
    """Yield the lines of tables, which share their columns and have at least one row each."""
    parts = [(table, *_foremost(table)) for table in tables]
    columns = _Columns([(table, row) for table, shown, _ in parts for row in [*shown, *table.totals]])
    # where nothing stands beside the numbers there is always room for it
    bare = not any(_said(group, code) for table in tables for group in table.groups)
    beside = bare or width - columns.width - 2 >= _ENOUGH
    columns.indent = 0 if beside else _DEEPER
    columns.limit(width)
    for index, (table, shown, rest) in enumerate(parts):
        if index:
            yield ""
        yield from _heading(table, paint)
        if index == 0:
            yield columns.names()
        chosen = {id(row) for row in shown}
        groups = [
            Group(group.line, group.frame, [row for row in group.rows if id(row) in chosen]) for group in table.groups
        ]
        for file, found in _by_file([group for group in groups if group.rows]):
            yield paint(BLUE, code.name(file) if file else NOWHERE)
            for group in found:
                yield from _group(table, group, code, columns, paint, width, beside)
        if rest:
            yield from _tail(rest, paint)
        if len(shown) > 1:
            for number_, total in enumerate(table.totals):
                lead = paint(BOLD, f"{'total' if number_ == 0 else '':>{_GUTTER}}")
                yield columns.line(table, lead, total)


def _foremost(table: Table) -> tuple[list[Row], list[Row]]:
    """The rows that cost most, and the rest."""
    pairs = [(group.line, row) for group in table.groups for row in group.rows]
    rows = [row for _, row in sorted(pairs, key=lambda pair: (-pair[1].weight(), pair[0], pair[1].kind))]
    most = _MOST.get(table.phase, _MOST_ELSEWHERE)
    # a line that says that one more was left out would take as much room
    return (rows[:most], rows[most:]) if len(rows) > most + 1 else (rows, [])


def legend(tables: Sequence[Table], paint: Paint) -> Iterator[str]:
    """Yield what the words in these tables stand for."""
    seen = {total.kind.direction for table in tables for total in table.totals}
    parts = [f"{name}: {meaning}" for name, meaning in _LEGEND.items() if name in seen]
    if any(cost.copying for table in tables for total in table.totals for cost in total.costs):
        parts.append("copying: how long the device took")
    if any(STAGED in row.kind.how for table in tables for group in table.groups for row in group.rows):
        parts.append(
            f"{STAGED}: `non_blocking` has little use out of pageable memory, which is copied on the host first"
        )
    if any("-" in calls for table in tables for total in table.totals for calls in figures(total)[1:]):
        parts.append("1-2: from the process with the least to the one with the most")
    yield from paint.wrap("; ".join(parts), 1)


def _heading(table: Table, paint: Paint) -> Iterator[str]:
    title, text = heading(table)
    first, *more = paint.wrap(f"{title}, {text}", 1)
    bold = len(table.title or TITLES[table.phase])
    yield f"{paint(BOLD, first[:bold])}{first[bold:]}"
    yield from more


def heading(table: Table) -> tuple[str, str]:
    """What a table is about, and what its figures are: ``Training``, ``per step: the median of 18 steps, ...``."""
    title = table.title or TITLES[table.phase]
    title = f"{title} of {table.who}" if table.who else title
    each = f" of each of {len(table.steps)} processes" if len(table.steps) > 1 else ""
    most, late = max(table.steps), max(table.steps) - WARM_UP
    if not table.per_step and table.phase != "inference":
        return title, f"in total{each}"
    one, some = ("forward pass", "passes") if table.phase == "inference" else ("step", "steps")
    if most == 1:
        return title, f"the only {one}{each}"
    if table.phase == "train" and late > 0:
        what = f"the median of {plural(late, 'step')}" if late > 1 else "the last one"
        return title, f"per step{each}: {what}, the first {WARM_UP} left out"
    return title, f"per {one}{each}: the {'median' if table.phase == 'train' else 'mean'} of {number(most)} {some}"


class _Columns:
    """The cells of a row, aligned; ``indent`` is how far in they stand."""

    def __init__(self, rows: Sequence[tuple[Table, Row]]) -> None:
        self.indent = 0
        texts = [_NAMES, *(figures(row) for _, row in rows)]
        self._widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
        # nothing is said of what was not seen: no column of bytes without bytes, none of times in a simulation
        self._shown = [True, True, *(any(column[1:]) for column in list(zip(*texts, strict=True))[2:])]
        self._how = max(len(quality(table, row)) for table, row in rows)
        self.width = _GUTTER + 2 + len(self._join(texts[0])) + 2 + self._how

    def limit(self, width: int) -> None:
        """Leave no more room for the words at the end than a terminal of this width has."""
        self._how = max(min(self._how, self._how + width - self.width - self.indent), 0)

    def names(self) -> str:
        """The line above the columns."""
        return f"{' ' * (_GUTTER + self.indent)}  {self._join(_NAMES)}".rstrip()

    def line(self, table: Table, lead: str, row: Row, text: str = "") -> str:
        """One row; ``lead`` takes the gutter."""
        body = f"{self._join(figures(row))}  {cut(quality(table, row), self._how):<{self._how}}"
        return f"{lead}{' ' * self.indent}  {body}  {text}".rstrip()

    def _join(self, found: Sequence[str]) -> str:
        texts = [
            f"{text:<{width}}" if index == 0 else f"{text:>{width}}"
            for index, (text, width) in enumerate(zip(found, self._widths, strict=True))
            if self._shown[index]
        ]
        return "  ".join(texts)


def figures(row: Row) -> tuple[str, ...]:
    """The figures of a row in words, in the order of ``_NAMES``; empty where there is nothing to say."""
    seconds, copying = ([getattr(cost, name) or 0.0 for cost in row.costs] for name in ("seconds", "copying"))
    return (
        row.kind.direction,
        between([cost.calls for cost in row.costs], number),
        between([cost.bytes for cost in row.costs], size) if any(cost.bytes for cost in row.costs) else "",
        between(seconds, duration) if any(seconds) else "",
        between(copying, duration) if any(copying) else "",
    )


def quality(table: Table, row: Row) -> str:
    """How it was copied or waited for, and how often if seldom: ``pageable, blocking, repeated``."""
    seldom = f"{row.steps:,} of {plural(max(table.steps), 'step')}" if table.rare(row) else ""
    again = "repeated" if row.repeats * 2 >= row.calls > 0 else ""
    if not again and row.double is not None and row.doubled * 2 >= row.calls > 0:
        file = "line " if row.frame and row.double.file == row.frame.file else f"{row.double.file.rpartition('/')[2]}:"
        again = f"as {file}{row.double.line} did"
    return ", ".join(filter(None, [row.kind.how, again, seldom]))


def _said(group: Group, code: Code) -> bool:
    """Whether there is something to say of a line of code besides its number."""
    return any(row.via for row in group.rows) or bool(group.frame and code.line(group.frame))


def _group(
    table: Table, group: Group, code: Code, columns: _Columns, paint: Paint, width: int, beside: bool
) -> Iterator[str]:
    """A line of code: its number, its text, its rows."""
    number_ = paint(BLUE, f"{group.line.row or '':>{_GUTTER}}")
    text = code.line(group.frame) if group.frame else ""
    blank = " " * _GUTTER
    several = len({row.kind.start for row in group.rows}) > 1
    if text and (not beside or several or any(row.via for row in group.rows)):
        yield f"{number_}  {cut(text, width - _GUTTER - 2)}"
        number_, text = blank, ""
    room = width - columns.width - columns.indent - 2
    places = [_place(row, code, several, room if beside else width - _GUTTER - 2) for row in group.rows]
    fit = all(row.via or cells(place) <= room for row, place in zip(group.rows, places, strict=True))
    above = ""
    for row, place in zip(group.rows, places, strict=True):
        if beside or (fit and not row.via):
            text = place or text
        elif place not in ("", above):
            yield f"{number_}  {place}"
            number_, above = blank, place
        yield columns.line(table, number_, row, cut(text, room))
        number_, text = blank, ""


def _place(row: Row, code: Code, several: bool, room: int) -> str:
    """What of a line of code a row is of, if that has to be said: an expression, or the line of a library."""
    if row.via is not None:
        # the library's line by which it came there, with its code where that can be read
        place = f"via {code.place(row.via)}"
        left = room - cells(place) - 2
        if left >= _READABLE:
            return f"{place}  {cut(code.line(row.via), left)}".rstrip()
        # the end is kept, with the file and the line
        return place if left >= -2 else f"via {cut(code.place(row.via)[::-1], room - 4)[::-1]}"
    if not several or row.frame is None or room < _READABLE:
        return ""
    expression = code.expression(row.frame)
    # the end is kept, where the call stands that was running
    return "" if expression == code.line(row.frame) else cut(expression[::-1], room)[::-1]


def _tail(rows: Sequence[Row], paint: Paint) -> Iterator[str]:
    """One line for the rows that are not shown."""
    sums: dict[str, Cost] = {}
    for row in rows:
        most = max(row.costs, key=Cost.weight)
        sums[row.kind.direction] = sums.get(row.kind.direction, Cost()).plus(most)
    parts = []
    for name, cost in sums.items():
        part = f"{name} {number(cost.calls)}"
        part += f" ({size(cost.bytes)})" if cost.bytes else ""
        parts.append(part + (f" {duration(cost.seconds)}" if cost.seconds else ""))
    text, lead = f"and {plural(len(rows), 'more row')}: {', '.join(parts)}", " " * (_GUTTER + 2)
    yield from paint.hanging(text, lead, f"{lead}  ", _GUTTER + 5)


def _by_file(groups: Sequence[Group]) -> Iterator[tuple[str, list[Group]]]:
    """The lines of each file, the costliest file first."""
    weights: dict[str, float] = {}
    for group in groups:
        weights[group.line.file] = weights.get(group.line.file, 0.0) + group.weight()
    ordered = sorted(groups, key=lambda group: (-weights[group.line.file], group.line.file, -group.weight()))
    for file, found in groupby(ordered, key=lambda group: group.line.file):
        yield file, list(found)


def cut(text: str, room: int) -> str:
    """Text that fits; what does not ends in dots."""
    if cells(text) <= room:
        return text
    kept = ""
    for char in text:
        if cells(kept + char) > room - 3:
            break
        kept += char
    return f"{kept.rstrip()}..." if room > 3 else ""
