"""What ``devlint check`` prints: its report or the diffs on the standard output, notes on the standard error."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping

import click

from devlint.check.options import Options
from devlint.check.outcome import Result
from devlint.config.schema import Config, ConfigError
from devlint.report.terminal import one_line, shows_links, silence, wants_color, width_of
from devlint.report.wording import plural

_STYLES = (("---", "1"), ("+++", "1"), ("@@", "36"), ("-", "31"), ("+", "32"))


def note(line: str) -> None:
    """One line on the standard error, which is not part of the report."""
    try:
        click.echo(one_line(line), err=True)
    except OSError:  # nobody listens, but the exit code still tells
        silence(sys.stderr)


def show(options: Options, config: Config, result: Result, contents: Mapping[str, bytes], known: int) -> bool:
    """Print what there is to print; whether that was possible."""
    # A name or a line that the terminal's encoding lacks must not cost the report.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        if options.diff:
            _show_diffs(options, result)
        else:
            _show_report(options, config, result, contents, known)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has seen enough (`| head`).
        silence(sys.stdout)
    except OSError as error:
        silence(sys.stdout)
        note(f"error: the report cannot be written: {error.strerror}")
        return False
    return True


def _show_report(options: Options, config: Config, result: Result, contents: Mapping[str, bytes], known: int) -> None:
    from devlint.check.discovery.exclusion import kind_of
    from devlint.report.base import Report
    from devlint.report.formats import render
    from devlint.report.formats.counts import statistics

    stream = sys.stdout
    if options.fix and contents:
        # The standard output is for the fixed text.
        stream = sys.stderr
        click.echo(next(iter(contents.values())), nl=False)
    filed = options.output_file is not None
    color = not filed and wants_color(stream)
    report = Report(
        result.findings,
        result.files,
        failures=result.errors,
        contents=contents,
        color=color,
        quiet=options.quiet,
        fixed=sum(result.gone) if options.fix else None,
        unsafe_fixes=options.unsafe_fixes,
        width=None if filed else width_of(stream),
        known=known,
        fail_on=config.fail_on,
        unfixed=result.unfixed,
        filed=filed,
        kind_of=lambda filename: kind_of(filename, result.checked.get(filename, config)),
        withheld=result.withheld,
        run=options.evidence or "",
        links=not filed and shows_links(stream),
    )
    pieces = (statistics if options.statistics else render)(report, config.output_format)
    if options.output_file is not None:
        _write(options.output_file, pieces)
        return
    for text in pieces:
        click.echo(text, file=stream, color=color)


def _write(file: str, pieces: Iterable[str]) -> None:
    from devlint.source.output import write

    text = "".join(f"{piece}\n" for piece in pieces)
    try:
        write(file, text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise ConfigError(f"--output-file: {file}: {error.strerror or error}") from error


def _show_diffs(options: Options, result: Result) -> None:
    """Print the diffs, byte by byte unless a person looks at them, and how much they would fix."""
    color = wants_color(sys.stdout)
    for diff in result.diffs.values():
        looked_at = color or sys.stdout.isatty()
        click.echo(_painted(diff, color) if looked_at else diff, nl=False, color=color)
    if not options.quiet:
        count = plural(sum(result.gone), "problem") if result.gone else "nothing"
        where = f" in {plural(len(result.diffs), 'file')}" if result.diffs else ""
        note(f"Would fix {count}{where}.")


def _painted(diff: bytes, color: bool) -> str:
    """A diff for a terminal: in colour, and without what a terminal would obey."""
    from devlint.report.terminal import Paint, shown

    paint = Paint(color)
    lines = re.split("\r?\n", diff.decode("utf-8", "replace"))
    styles = (next((style for start, style in _STYLES if line.startswith(start)), "0") for line in lines)
    return "\n".join(paint(style, shown(line)) for style, line in zip(styles, lines, strict=True))
