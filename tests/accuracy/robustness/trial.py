"""One text and all that devlint can do with it: check, fix, silence, remember, show; what goes wrong is said."""

from __future__ import annotations

import ast
import signal
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from devlint.check.analysis import Analyzer, check_source
from devlint.check.filters.baseline import Baseline, Judged
from devlint.check.outcome import AnalysisError
from devlint.check.rewrite.fixes import ApplyFixes
from devlint.check.rewrite.suppressions import suppressed
from devlint.check.suppressions import META
from devlint.config.schema import OUTPUT_FORMATS, Config, RuleLayer
from devlint.finding import Finding
from devlint.report.base import Report
from devlint.report.formats import render
from devlint.report.formats.counts import statistics
from devlint.rules.selection import PARSE_ERROR
from devlint.source.text import split_lines

HANG = 300.0
"""Seconds of processor time; the largest text that is tried takes some."""
EVERYTHING = Config().selecting(RuleLayer(("ALL",)))


class HangError(Exception):
    """More processor time went by than any text of this size can need."""


@dataclass
class Tally:
    """What was tried, counted by what it was, and a line for everything that went wrong."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Take in what was tried elsewhere."""
        self.counts += other.counts
        self.wrong += other.wrong


@contextmanager
def watched(text: str) -> Iterator[None]:
    """Raise a HangError inside when a text has used up more processor time than the slowest machine needs."""

    def ring(*_: object) -> None:
        raise HangError

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, HANG)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def attempt(tally: Tally, name: str, text: str, thorough: bool) -> None:
    """Check a text and apply all its fixes; if ``thorough``, silence and remember what is found, and show it, too."""
    tally.counts["texts"] += 1
    tally.counts["lines"] += text.count("\n") + 1
    try:
        with watched(text), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for complaint in _complaints(tally, text, thorough):
                tally.wrong.append(f"{name}: {complaint}")
    except HangError:
        tally.wrong.append(f"{name}: no end")
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        tally.wrong.append(f"{name}: {type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})")


def _complaints(tally: Tally, text: str, thorough: bool) -> Iterator[str]:
    data = text.encode("utf-8", "surrogatepass")
    found = check_source(data, "tried.py", EVERYTHING)
    parses = _is_read(ast.parse, text)
    tally.counts["parse"] += parses
    tally.counts["findings"] += len(found)
    if parses is any(finding.code == PARSE_ERROR for finding in found):
        yield f"Python {'reads' if parses else 'does not read'} it, devlint says otherwise"
    yield from _misplaced(text, found)
    if parses:
        for unsafe in (False, True):
            yield from _fixed(tally, data, unsafe)
    if thorough and parses:
        yield from _silenced(tally, data, found)
    if thorough:
        tally.counts["remembered and shown"] += 1
        yield from _remembered(found)
        report = Report(found, 1, contents={"tried.py": data})
        for way in OUTPUT_FORMATS:
            "".join(render(report, way))
        "".join(statistics(report, "text"))


def _is_read(read: Callable[[str], object], text: str) -> bool:
    try:
        read(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _compiled(text: str) -> object:
    return compile(text, "<tried>", "exec", dont_inherit=True)


def _misplaced(text: str, found: Iterable[Finding]) -> Iterator[str]:
    """Findings whose place is not in the text."""
    rows = len(split_lines(text))
    for finding in found:
        for span in (finding.span, *(place.span for place in finding.related)):
            ordered = (span.row, span.column) <= (span.end_row, span.end_column)
            if not (1 <= span.row <= span.end_row <= rows and span.column >= 1 and ordered):
                yield f"{finding.code} is said to be at {span}"


def _fixed(tally: Tally, data: bytes, unsafe: bool) -> Iterator[str]:
    """What is wrong with a text after all of its fixes."""
    kind = "all fixes" if unsafe else "safe fixes"
    mended = ApplyFixes(unsafe).rewrite(data, Analyzer("tried.py", EVERYTHING))
    tally.counts[kind] += mended.gone
    if mended.unfixed is not None:
        yield f"{kind}: {mended.unfixed}"
    if mended.data != data:
        before, after = data.decode("utf-8", "surrogatepass"), mended.data.decode("utf-8", "surrogatepass")
        if not _is_read(ast.parse, after) or (_is_read(_compiled, before) and not _is_read(_compiled, after)):
            yield f"{kind}: Python does not read the result"


def _silenced(tally: Tally, data: bytes, found: list[Finding]) -> Iterator[str]:
    """What is wrong with a text after a comment was added for each finding."""
    wanted = [finding for finding in found if finding.code not in META]
    if not wanted:
        return
    tally.counts["silenced"] += len(wanted)
    after, left = suppressed(data, Analyzer("tried.py", EVERYTHING), found, wanted, "for now")
    if any(finding.code not in META for finding in left):
        yield "a suppression that was added is not heeded"
    if ast.dump(ast.parse(after)) != ast.dump(ast.parse(data)):
        yield "a suppression that was added changes the code"


def _remembered(found: list[Finding]) -> Iterator[str]:
    """What is wrong with a baseline of the findings that was written and read."""
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "baseline.json")
        Baseline(file, {}).updated(found, Judged()).write()
        if Baseline.read(file).new(found):
            yield "what the baseline holds is new to it"


def analysed(text: str, config: Config = EVERYTHING) -> int:
    """How many findings there are in a text; an :class:`AnalysisError` is let through."""
    return len(check_source(text, "tried.py", config))


__all__ = ["EVERYTHING", "AnalysisError", "HangError", "Tally", "analysed", "attempt", "watched"]
