"""What a run that fixes writes besides its report: the fixed standard input, or the diffs."""

from __future__ import annotations

import re
import sys

import click

from devlint.check.discover import Target
from devlint.check.engine import FAILED, AnalysisError, Fixing, Result
from devlint.check.fixes.diff import unified
from devlint.check.fixes.mend import mend
from devlint.check.options import STDIN
from devlint.check.project import surroundings
from devlint.config.schema import Config
from devlint.finding import Failure
from devlint.report.terminal import Paint, shown
from devlint.report.wording import plural

_STYLES = (("---", "1"), ("+++", "1"), ("@@", "36"), ("-", "31"), ("+", "32"))


def fix_text(data: bytes, name: str, config: Config, fixing: Fixing) -> tuple[Result, bytes]:
    """Fix the standard input: what comes of it, and its new content, which is the old one if that is not wanted."""
    around = surroundings(Target(name, len(data), config)) if name != STDIN else None
    try:
        mended = mend(data, name, config, fixing.unsafe, fixing.narrowing, around)
    except AnalysisError as error:
        return Result(errors=[Failure(name, f"{FAILED}: {error}")]), data
    unfixed: list[str] = [] if mended.failure is None else [Failure(name, mended.failure)]
    diff = b"" if fixing.write else unified(name, data, mended.data)
    diffs = [diff] if diff else []
    return Result([*mended.findings], [], 1, unfixed, mended.fixed, diffs), mended.data


def write_diffs(result: Result, color: bool) -> None:
    """Print the diffs, byte by byte unless a person looks at them."""
    looked_at = color or sys.stdout.isatty()
    for diff in result.diffs:
        click.echo(_painted(diff, Paint(color)) if looked_at else diff, nl=False, color=color)


def would_fix(result: Result) -> str:
    """How much the diffs would fix."""
    count = plural(result.fixed, "problem") if result.fixed else "nothing"
    where = f" in {plural(len(result.diffs), 'file')}" if result.diffs else ""
    return f"Would fix {count}{where}."


def _painted(diff: bytes, paint: Paint) -> str:
    """A diff for a terminal: in colour, and without what a terminal would obey."""
    lines = re.split("\r?\n", diff.decode("utf-8", "replace"))
    return "\n".join(paint(_style(line), shown(line)) for line in lines)


def _style(line: str) -> str:
    return next((style for start, style in _STYLES if line.startswith(start)), "0")
