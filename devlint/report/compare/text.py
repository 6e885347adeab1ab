"""A comparison as text for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from devlint.report.audit.header import command
from devlint.report.audit.layout import NOWHERE, TITLES, cut
from devlint.report.audit.processes import trainers
from devlint.report.audit.table import WHOLE, has_phases
from devlint.report.compare import Both, Comparison, Flow, Line, Spot
from devlint.report.terminal import BLUE, BOLD, Paint, cells, one_line
from devlint.report.wording import duration, number, plural, size

_GOOD, _BAD = "32", "31"
_MOST_LINES = 25

_LABEL = 9


class _Row(NamedTuple):
    """A line of a table; ``better`` says whether less is better here and less it is, ``None`` where all is the same."""

    title: str
    before: str
    after: str
    change: str
    better: bool | None = None


def render(found: Comparison, color: bool = False, width: int = 100) -> Iterator[str]:
    """Yield the comparison piece by piece; a piece is one or more lines, without the last line end."""
    paint = Paint(color, width)
    yield from _head(found, paint)
    yield from _findings(found, paint)
    yield from _figures(found, paint)
    yield from _lines(found, paint, width)


def _head(found: Comparison, paint: Paint) -> Iterator[str]:
    for label, record in (("before", found.before), ("after", found.after)):
        run = ", ".join(filter(None, [command(record), one_line(record.started[:16].replace("T", " "))]))
        yield f"  {paint(BLUE, f'{label:<{_LABEL}}')}  {run}"
    yield ""
    if found.caveats:
        yield paint(BOLD, "These runs are not fully comparable")
        for caveat in found.caveats:
            yield from paint.hanging(one_line(caveat), "  - ", "    ", 5)
        yield ""


def _findings(found: Comparison, paint: Paint) -> Iterator[str]:
    counts = [(len(found.gone), "gone"), (len(found.new), "new"), (found.remaining, "remaining")]
    if not any(count for count, _ in counts):
        return
    yield f"{paint(BOLD, 'Findings')}: {', '.join(f'{count:,} {name}' for count, name in counts if count)}"
    for sign, color, findings in (("-", _GOOD, found.gone), ("+", _BAD, found.new)):
        for finding in findings:
            yield from paint.hanging(_finding(finding), f"  {paint(color, sign)} ", "      ", 6)
    yield ""


def _finding(finding: dict[str, Any]) -> str:
    place = f"{finding['filename']}:{finding['location']['row']}"
    return one_line(f"{place} {finding['severity']}[{finding['code']}] {finding['name']}: {finding['message']}")


def _figures(found: Comparison, paint: Paint) -> Iterator[str]:
    rows = [_row(figure.name, figure.values, figure.show, timed=figure.show is duration) for figure in found.figures]
    for flow in found.totals:
        rows += _flow_rows(flow)
    if not rows:
        yield "Nothing was copied and nothing was waited for in either run."
        return
    each = "per step" if found.per_step else "in total"
    several = max(len(trainers(record)) for record in (found.before, found.after)) > 1
    known = [has_phases(record) for record in (found.before, found.after)]
    title = TITLES[found.phase] if all(known) or found.phase != "setup" else "Outside of steps" if any(known) else WHOLE
    yield f"{paint(BOLD, title)}, {each}{', of all processes the greatest figure' if several else ''}"
    yield from _table(rows, paint)
    yield ""


def _flow_rows(flow: Flow) -> Iterator[_Row]:
    yield _row("costly calls" if flow.direction == "call" else f"{flow.direction} calls", flow.calls, number)
    if any(flow.bytes):
        yield _row(f"{flow.direction} bytes", flow.bytes, size)
    if any(flow.seconds):
        yield _row(f"{flow.direction} blocked", flow.seconds, duration, timed=True)


def _row(title: str, values: Both, show: Callable[[float], str], timed: bool = False) -> _Row:
    old, new = ("?" if value is None else show(value) for value in values)
    return _Row(title, old, new, *_change(values, timed))


def _change(values: Both, timed: bool) -> tuple[str, bool | None]:
    old, new = values
    if old is None or new is None:
        return "", None
    if not values.differ(timed):
        return "same", None
    if not new:
        return "gone", True
    if not old:
        return "new", False
    return _percent((new - old) / old), new < old


def _percent(part: float) -> str:
    if part >= 9:
        return f"{part + 1:,.0f} times"
    if abs(part) < 0.001:
        return f"{'-' if part < 0 else '+'}<0.1 %"
    return f"{100 * part:+.{0 if abs(part) >= 0.01 else 1}f} %"


def _table(rows: Sequence[_Row], paint: Paint) -> Iterator[str]:
    names = _Row("", "before", "after", "change")
    columns = zip(*((row.title, row.before, row.after, row.change) for row in (names, *rows)), strict=True)
    title, before, after, change = (max(map(len, column)) for column in columns)
    for row in (names, *rows):
        text = f"{row.change:>{change}}"
        if row.better is not None:
            text = paint(_GOOD if row.better else _BAD, text)
        yield f"  {row.title:<{title}}  {row.before:>{before}}  {row.after:>{after}}  {text}".rstrip()


def _lines(found: Comparison, paint: Paint, width: int) -> Iterator[str]:
    changed = [line for line in found.lines if line.changed]
    same = len(found.lines) - len(changed)
    if not found.lines:
        return
    yield f"{paint(BOLD, 'By line')}: {plural(len(changed), 'line')} changed, {same:,} as before"
    for line in changed[:_MOST_LINES]:
        yield from _line(line, paint, width)
    if len(changed) > _MOST_LINES:
        yield f"  and {plural(len(changed) - _MOST_LINES, 'more line')} (all of them: --output-format json)"


def _line(line: Line, paint: Paint, width: int) -> Iterator[str]:
    spot = line.after or line.before
    if spot is None:
        return
    text = cut(spot.code, width - 4 - cells(_place(line)))
    yield f"  {paint(BLUE, _place(line))}  {text}".rstrip()
    for flow in line.flows:
        parts = [_arrow(flow.calls, number, " calls")]
        parts += [_arrow(flow.bytes, size)] if any(flow.bytes) else []
        parts += [_arrow(flow.seconds, duration, " blocked")] if any(flow.seconds) else []
        yield f"      {flow.direction:<4}  {', '.join(parts)}"


def _place(line: Line) -> str:
    if line.before is None or line.after is None:
        spot = line.after or line.before
        where = _called(spot) if spot else NOWHERE
        return f"{where} ({'new' if line.before is None else 'gone'})"
    old, new = _called(line.before), _called(line.after)
    if old == new:
        return new
    moved = str(line.before.line) if line.before.file == line.after.file else old
    return f"{new} (was {moved})"


def _called(spot: Spot) -> str:
    return f"{spot.file}:{spot.line}" if spot.file else NOWHERE


def _arrow(values: Both, show: Callable[[float], str], unit: str = "") -> str:
    old, new = ("?" if value is None else show(value) for value in values)
    return f"{old}{unit}" if old == new else f"{old} -> {new}{unit}"
