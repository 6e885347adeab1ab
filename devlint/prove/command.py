"""What ``devlint prove`` does with its arguments: find the findings, prove each, print, and choose the exit code."""

from __future__ import annotations

import textwrap

import click

from devlint.config.schema import ConfigError
from devlint.finding import Finding
from devlint.prove.chosen import chosen, place_of
from devlint.prove.process import ProcessError
from devlint.prove.verdict import CONFIRMED, Verdict, prove
from devlint.streams import open_streams

EXIT_CONFIRMED, EXIT_NOT, EXIT_FAILED, EXIT_INTERRUPTED = 0, 1, 2, 130


def run(place: str, code: str | None, output: str | None) -> int:
    """Prove the findings at a place: 0 if all are confirmed, 1 if one is not, 2 if nothing can be done."""
    open_streams()
    try:
        file, row = place_of(place)
        source, found, every = chosen(file, row, code.upper() if code else None)
        verdicts = [_told(finding, prove(finding, source, every)) for finding in found]
        if output is not None:
            _write(output, verdicts)
    except (ConfigError, ProcessError) as error:
        from devlint.report.terminal import one_line

        click.echo(f"error: {one_line(str(error))}", err=True)
        return EXIT_FAILED
    except KeyboardInterrupt:
        click.echo("error: interrupted", err=True)
        return EXIT_INTERRUPTED
    return EXIT_CONFIRMED if all(verdict.kind == CONFIRMED for verdict in verdicts) else EXIT_NOT


def _told(finding: Finding, verdict: Verdict) -> Verdict:
    from devlint.report.terminal import one_line

    span = finding.span
    head = f"{finding.filename}:{span.row}:{span.column}: {finding.severity}[{finding.code}] {finding.message}"
    click.echo(one_line(head))
    if verdict.script:
        click.echo("\n" + textwrap.indent(verdict.script, "    "))
    click.echo(one_line(f"{verdict.kind}: {verdict.text}"))
    return verdict


def _write(output: str, verdicts: list[Verdict]) -> None:
    script = next((verdict.script for verdict in verdicts if verdict.kind == CONFIRMED), "")
    if not script:
        return
    try:
        with open(output, "w", encoding="utf-8") as stream:
            stream.write(script)
    except OSError as error:
        raise ConfigError(f"{output}: {error.strerror or error}") from error
