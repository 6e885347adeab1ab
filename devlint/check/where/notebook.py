"""Where names of a notebook's cells are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from devlint.check.where.lookup import NoSuchNameError, where
from devlint.config.schema import ConfigError
from devlint.finding import Answer
from devlint.source.notebook.cells import NotebookError, read
from devlint.source.notebook.script import Script
from devlint.source.text import ParseFailure, split_lines
from devlint.source.tree import Source

if TYPE_CHECKING:
    from devlint.check.project.view import ProjectView


def where_in_cell(
    script: Script,
    text: str,
    filename: str,
    place: tuple[int, int],
    name: str,
    column: int,
    project: ProjectView | None,
) -> list[Answer]:
    """What is known of the names in a line: ``place`` is the cell and the row, ``text`` the cell's."""
    cell, row = place
    failure = next((failure for number, failure in script.broken if number == cell), None)
    if failure is not None:
        raise ConfigError(f"{filename}:cell {cell}:{failure.row}:{failure.column}: {failure.message}")
    at, count = script.row(cell, row), len(split_lines(text))
    if at is None:
        raise NoSuchNameError("it holds no Python code")
    if not 1 <= row <= count:
        raise NoSuchNameError(f"there is no line {row}: the cell has {count}")
    source = Source.parse(script.text, filename)
    if isinstance(source, ParseFailure):
        raise ConfigError(f"{filename}: {source.message}")
    try:
        answers = where(source, at, name, column, project)
    except NoSuchNameError:
        raise NoSuchNameError(f"there is no name `{name}` in line {row}") from None
    return [_located(answer, script) for answer in answers]


def where_in_notebook(
    data: bytes, filename: str, place: tuple[int, int], name: str, column: int, project: ProjectView | None
) -> list[Answer]:
    """What is known of the names in a line of a notebook's cell; a ConfigError says that it cannot be read."""
    try:
        notebook = read(data)
    except NotebookError as error:
        raise ConfigError(f"{filename}: {error}") from error
    if not 1 <= place[0] <= len(notebook.cells):
        raise NoSuchNameError(f"there is no such cell: the notebook has {len(notebook.cells)}")
    text = notebook.cells[place[0] - 1].text
    return where_in_cell(Script.read(notebook), text, filename, place, name, column, project)


def _located(answer: Answer, script: Script) -> Answer:
    own = ("", answer.filename)
    story = tuple(
        replace(place, span=script.in_cell(place.span)) if place.filename in own else place for place in answer.story
    )
    return replace(answer, span=script.in_cell(answer.span), story=story)
