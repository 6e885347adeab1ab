"""The section at the end of a suite on a simulated accelerator: device errors, failures, and the costliest lines."""

from __future__ import annotations

import linecache
from collections.abc import Iterable, Iterator, Mapping, Sequence

import pytest

from devlint.auditor.judgement.presentation import judged
from devlint.config.load import Resolver
from devlint.record import Mismatch, Process, Record
from devlint.report.audit.code import Code
from devlint.report.audit.findings import explanation
from devlint.report.excerpt import diagnostic
from devlint.report.terminal import BOLD, Paint, shown
from devlint.report.wording import listed, plural, size
from devlint.rules.selection import validate
from devlint.testing.counting import Line, Row, summed
from devlint.testing.failures import OnTheHost, Told, met

_MOST_ERRORS = 10
_MOST_TESTS = 50
_MOST_LINES = 10
_COMPARED: tuple[tuple[OnTheHost, str], ...] = (
    ("passes", "Fails only with an accelerator"),
    ("needs one", "Needs an accelerator: fails on the CPU for want of one"),
    ("fails", "Fails on the CPU, too"),
    ("does not run", "Fails with an accelerator, and does not run on the CPU"),
)


def section(
    config: pytest.Config,
    failed: Mapping[str, Told],
    uncollected: Sequence[str],
    rows: Iterable[Row],
    compared: Mapping[str, OnTheHost] | None,
    color: bool,
    width: int,
) -> Iterator[str]:
    """Yield the section line by line.

    ``uncollected`` are those of what failed that are no tests; ``compared`` says what failed tests do on the CPU, if
    that was tried.
    """
    paint = Paint(color, width)
    code = Code(Record(directory=str(config.rootpath)))
    parts = (
        _errors(list(met(failed.items())), failed, str(config.rootpath), paint),
        _others(failed, code, paint, width),
        _missing(failed, paint),
        _failures(failed, uncollected, compared, paint, width),
        _lines(summed(rows), code, paint, width),
    )
    for number, lines in enumerate(filter(None, map(list, parts))):
        yield from (["", *lines] if number else lines)


def _errors(
    groups: Sequence[tuple[Mismatch, list[str]]], failed: Mapping[str, Told], root: str, paint: Paint
) -> Iterator[str]:
    if not groups:
        if not failed:
            yield "No device error was met: no test failed."
        elif not any(why["elsewhere"] for why in failed.values()):
            yield "No test failed of tensors on different devices."
        return
    record = Record(
        simulated=True, directory=root, processes=(Process(pid=0, mismatches=tuple(one for one, _ in groups)),)
    )
    record = judged(record, Resolver(validate))
    code = Code(record)
    for number, (mismatch, names) in enumerate(groups[:_MOST_ERRORS]):
        if number:
            yield ""
        who = "a test" if len(names) == 1 else plural(len(names), "test")
        finding, notes = explanation(record, mismatch, code, who)
        yield from diagnostic(finding, code.lines_by_name, paint, [*notes, ("tests", _tests(names))])
    if len(groups) > _MOST_ERRORS:
        yield f"and {plural(len(groups) - _MOST_ERRORS, 'more device error')}"


def _others(failed: Mapping[str, Told], code: Code, paint: Paint, width: int) -> Iterator[str]:
    """Mismatches of other processes, of which nothing but their text is known, and what CUDA refuses, too."""
    elsewhere = [(name, why["elsewhere"]) for name, why in failed.items() if why["elsewhere"]]
    yield from _listed("Tensors on different devices in a process that the test started", elsewhere, paint, width)
    refused = [
        (f"{name}  {code.name(why['file'])}:{why['line']}" if why["file"] else name, why["refused"])
        for name, why in failed.items()
        if why["refused"]
    ]
    yield from _listed("Refused by the device, as by a real one", refused, paint, width)


def _listed(heading: str, rows: Sequence[tuple[str, str]], paint: Paint, width: int) -> Iterator[str]:
    """Tests and what they say, of each as much as fits on a line."""
    if rows:
        yield paint(BOLD, f"{heading} ({len(rows)})")
    for name, text in rows[:_MOST_TESTS]:
        yield f"  {name}  {shown(text)}"[: max(width, len(name) + 2)]
    if len(rows) > _MOST_TESTS:
        yield f"  and {len(rows) - _MOST_TESTS} more"


def _missing(failed: Mapping[str, Told], paint: Paint) -> Iterator[str]:
    """What the simulated accelerator lacks, which says nothing of the tests."""
    found: dict[str, list[str]] = {}
    for name, why in failed.items():
        if why["missing"]:
            found.setdefault(why["missing"], []).append(name)
    for words, names in found.items():
        for line in paint.wrap(f"{words} ({_tests(names)})", 0):
            yield paint(BOLD, line)


def _failures(
    failed: Mapping[str, Told],
    uncollected: Sequence[str],
    compared: Mapping[str, OnTheHost] | None,
    paint: Paint,
    width: int,
) -> Iterator[str]:
    if uncollected:
        whose = "its" if len(uncollected) == 1 else "their"
        yield f"{_tests(uncollected)} could not be collected: {whose} tests did not run"
        if compared is not None and not compared:
            yield "--devlint-compare-cpu has no effect: no test has run that it could run again"
    if compared is None:
        if len(failed) > len(uncollected):
            count = plural(len(failed) - len(uncollected), "test")
            yield f"{count} failed: --devlint-compare-cpu runs them again on the CPU, and tells which pass there"
        return
    for outcome, heading in _COMPARED:
        names = [name for name, found in compared.items() if found == outcome]
        # what the accelerator lacks is its own fault, unless the test fails without it, too
        names = [name for name in names if outcome == "fails" or not failed[name]["missing"]]
        yield from _listed(heading, [(name, failed[name]["error"]) for name in names], paint, width)


def _lines(lines: Sequence[Line], code: Code, paint: Paint, width: int) -> Iterator[str]:
    own = [line for line in lines if line.file]
    if own:
        yield paint(BOLD, "Lines that copy or wait the most, in all tests")
    top = own[:_MOST_LINES]
    figures = [(f"{line.calls:,}", size(line.bytes) if line.bytes else "") for line in top]
    places = [f"{code.name(line.file)}:{line.row}" for line in top]
    widths = [max((len(text) for text in column), default=0) for column in (*zip(*figures, strict=True), places)]
    for line, (calls, bytes_), place in zip(top, figures, places, strict=True):
        text = shown(linecache.getline(line.file, line.row).strip())
        shown_ = f"  {line.direction:4} {calls:>{widths[0]}} {bytes_:>{widths[1]}}  {place:{widths[2]}}  {text}"
        yield shown_.rstrip()[:width]
    if len(own) > len(top):
        yield f"  and {plural(len(own) - len(top), 'more line')}"
    if own:
        yield "  H2D: copied to a device; D2H: copied from it, for which the host waits; sync: waited without a copy"
    tests = [line for line in lines if not line.file]
    counts = [f"{line.calls:,} {line.direction}" for line in tests]
    if counts:
        yield f"Besides, the tests themselves: {listed(counts)}"


def _tests(names: Sequence[str]) -> str:
    more = len(names) - 1
    return names[0] + (f" and {more} more" if more else "")
