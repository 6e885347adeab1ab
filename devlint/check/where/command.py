"""What ``devlint where`` does with its arguments: find the place, ask, print, and choose the exit code."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import click

from devlint.check.discovery.target import Target
from devlint.check.project.view import view_of
from devlint.check.where.lookup import NoSuchNameError, where, where_in_notebook
from devlint.check.witness import Witness
from devlint.config.load import Resolver
from devlint.config.schema import ConfigError
from devlint.finding import Answer, Finding, Severity, named
from devlint.rules.selection import validate
from devlint.source.files import content
from devlint.source.text import ParseFailure
from devlint.source.tree import Source
from devlint.streams import open_streams

_IN_CELL = re.compile(r"(?P<file>.+?\.ipynb):(?:cell )?(?P<cell>\d{1,9}):(?P<row>\d{1,9})(?::(?P<word>[^:]+))?")
_PLACE = re.compile(r"(?P<file>.+?):(?P<row>\d{1,9})(?::(?P<word>[^:]+))?")


@dataclass(frozen=True, slots=True)
class Question:
    """A place as the user wrote it: a file, a cell of a notebook, a line, and a name or a column, if one is given."""

    filename: str
    row: int
    name: str = ""
    column: int = 0
    cell: int = 0


def run(
    places: Sequence[str],
    output_format: str,
    evidence: Callable[[str], Witness] | None = None,
    record: str | None = None,
) -> int:
    """Answer every question: 0 if something is known of each, 1 if of some nothing is, 2 if one makes no sense.

    ``evidence`` reads a record: the one that is given, or else the one that the configuration of a file names.
    """
    open_streams()
    try:
        witness = evidence(record) if evidence is not None and record is not None else None
        answers = [(question, _answers(question, evidence, witness)) for question in map(question_of, places)]
    except (ConfigError, NoSuchNameError) as error:
        from devlint.report.terminal import one_line

        click.echo(f"error: {one_line(str(error))}", err=True)
        return 2
    if output_format == "json":
        from json import dumps

        click.echo(dumps([_object(answer) for _, some in answers for answer in some], indent=2))
    else:
        _print(answers)
    return 0 if all(any(answer.known for answer in some) for _, some in answers) else 1


def question_of(place: str) -> Question:
    """Read ``FILE:LINE``, ``FILE:LINE:NAME`` or ``FILE:LINE:COLUMN``; a ConfigError says what is wrong."""
    notebook = ".ipynb:" in place
    match = (_IN_CELL if notebook else _PLACE).fullmatch(place)
    if match is None:
        expected = "FILE:CELL:LINE or FILE:CELL:LINE:NAME" if notebook else "FILE:LINE or FILE:LINE:NAME"
        raise ConfigError(f"expected {expected}, not {place!r}")
    word = (match["word"] or "").strip()
    column = int(word) if word.isdecimal() and len(word) < 10 else 0
    if word and not column and not all(part.isidentifier() for part in word.lstrip(".").split(".")):
        raise ConfigError(f"{place}: {word!r} is not a name such as `x` or `self.weight`")
    cell = int(match["cell"]) if notebook else 0
    return Question(match["file"], int(match["row"]), "" if column else word, column, cell)


def _answers(question: Question, evidence: Callable[[str], Witness] | None, witness: Witness | None) -> list[Answer]:
    filename = question.filename
    try:
        data = content(filename)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{filename}: {getattr(error, 'strerror', None) or error}") from error
    config = Resolver(validate).at(os.path.dirname(os.path.abspath(filename)))
    project = view_of(Target(filename, len(data), config))
    try:
        if question.cell:
            place = question.cell, question.row
            return where_in_notebook(data, filename, place, question.name, question.column, project)
        source = Source.parse(data, filename, project.tree)
        if isinstance(source, ParseFailure):
            raise ConfigError(f"{filename}:{source.row}:{source.column}: {source.message}")
        if witness is None and evidence is not None and config.evidence is not None and os.path.isfile(config.evidence):
            witness = evidence(config.evidence)
        seen = witness.observations(filename, data) if witness is not None else None
        return where(source, question.row, question.name, question.column, project, seen)
    except NoSuchNameError as error:
        raise NoSuchNameError(f"{named(filename, question.cell)}: {error}") from error


def _object(answer: Answer) -> dict[str, Any]:
    """An answer for programs."""
    from devlint.report.formats.json import absolute, place_of, places

    return {
        "name": answer.name,
        "kind": answer.kind or None,
        "devices": list(answer.devices),
        "certain": answer.certain,
        "message": answer.message,
        "caller": answer.caller or None,
        "observed": answer.observed or None,
        "filename": absolute(answer.filename),
        **place_of(answer.span),
        "story": places(answer.story, answer.filename),
    }


def _print(answers: Sequence[tuple[Question, Sequence[Answer]]]) -> None:
    """Print each answer with its story underlined in the code."""
    from devlint.report.base import Report, in_cells
    from devlint.report.excerpt import diagnostic
    from devlint.report.terminal import BOLD, Paint, one_line, wants_color, width_of

    width = width_of(sys.stdout)
    report = Report(())
    paint = Paint(wants_color(sys.stdout), width, width)
    for question, some in answers:
        if not some:
            place = f"{named(question.filename, question.cell)}:{question.row}"
            click.echo(f"{place}: nothing is known of where anything in this line is\n")
        for answer in some:
            finding = Finding("", "", Severity.INFO, "", answer.filename, answer.span, related=answer.story)
            told = paint.hanging(one_line(answer.message), "", "    ", 4, BOLD)
            for line in (*told, *diagnostic(in_cells(finding), report.lines, paint, titled=False), ""):
                click.echo(line)
