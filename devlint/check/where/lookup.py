"""Where the values of names live, one line of a file or of a notebook's cell at a time, and how that came about."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from devlint.config.schema import ConfigError
from devlint.device import Device, Kind, Role
from devlint.finding import Answer, Place, Span
from devlint.flow.syntax.names import dotted
from devlint.source.stack import recursing
from devlint.source.text import ParseFailure, split_lines
from devlint.source.tree import Source

if TYPE_CHECKING:
    from devlint.check.project.view import ProjectView
    from devlint.flow.engine.queries import Known, Watch, Watched
    from devlint.sites.observed import Observations
    from devlint.source.notebook.script import Script


class NoSuchNameError(Exception):
    """There is no such name, or no such line; the text says so."""


def where(
    source: Source,
    row: int,
    name: str = "",
    column: int = 0,
    project: ProjectView | None = None,
    observations: Observations | None = None,
) -> list[Answer]:
    """What is known of the names of a line: of one of them, or of the one at a column (from 1), if that is given.

    Of what the code leaves open a run may have seen something: ``observations``.

    If it is asked for, a name of which nothing is known has an answer that says so; else it has none.
    """
    if not 1 <= row <= len(source.lines):
        raise NoSuchNameError(f"there is no line {row}: the file has {len(source.lines)}")
    found = [(node, text, span) for node, text, span in _names(source, row) if _is_meant(text, span, name, column)]
    if not found and name:
        raise NoSuchNameError(f"there is no name `{name}` in line {row}")
    asked = bool(name or column)
    watch = _watched(source, [node for node, _, _ in found], project, observations)
    answers: dict[tuple[str, str, str], Answer] = {}
    for node, text, span in found:
        if not asked and text == "self":
            continue
        known = [known for known in watch.of(node) if known.tells and (asked or not known.mere)]
        unknown = Answer(text, source.filename, span, f"nothing is known of where `{text}` is")
        for answer in [_answer(source, text, span, one, project) for one in known] or [unknown]:
            if answer.known or asked:
                answers.setdefault((answer.name, answer.message, answer.caller), answer)
    told = {answer.name for answer in answers.values() if answer.known}
    return [answer for answer in answers.values() if answer.known or answer.name not in told]


def _watched(
    source: Source, nodes: list[Watched], project: ProjectView | None, observations: Observations | None
) -> Watch:
    from devlint.flow.catalog.libraries import BUILT_IN
    from devlint.flow.engine.queries import Watch, watched

    catalog = BUILT_IN if project is None else project.catalog
    if not nodes or not ("torch" in source.text or catalog.mentioned(source.text)):
        return Watch(())
    return recursing(partial(watched, source.tree, source.text, nodes, project, catalog, observations))


def _names(source: Source, row: int) -> Iterator[tuple[Watched, str, Span]]:
    """The names in a line, in its order: the node, how it reads, and where the name itself stands."""
    found: list[tuple[Watched, str, Span]] = []
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Name) and node.lineno == row:
            found.append((node, node.id, source.span(node)))
        elif isinstance(node, ast.arg) and node.lineno == row:
            span = source.span(node)
            found.append((node, node.arg, Span(row, span.column, row, span.column + len(node.arg))))
        elif isinstance(node, ast.Attribute) and node.end_lineno == row:
            end = source.span(node).end_column
            found.append((node, dotted(node) or f".{node.attr}", Span(row, end - len(node.attr), row, end)))
    yield from sorted(found, key=lambda entry: entry[2])


def _is_meant(text: str, span: Span, name: str, column: int) -> bool:
    if column:
        return span.column <= column <= span.end_column
    return not name or name == text or (text.rpartition(".")[2] == name and "." not in name)


def _answer(source: Source, text: str, span: Span, known: Known, project: ProjectView | None) -> Answer:
    places = []
    for step in known.story:
        home = source if project is None else project.home(source, step.node)
        if hasattr(step.node, "lineno"):
            places.append(Place(home.span(step.node), step.label, "" if home is source else home.filename))
    message = f"`{text}` {known.says}" if known.says else f"the code does not say where `{text}` is"
    if known.caller:
        message += f", as {known.caller if ' ' in known.caller else f'`{known.caller}`'} calls this"
    if known.observed:
        message += f"; {known.observed}"
    return Answer(
        text,
        source.filename,
        span,
        message,
        known.kind,
        tuple(dict.fromkeys(_plain(leaf) for leaf in known.device.leaves() if leaf.known)),
        known.certain,
        tuple(dict.fromkeys(places)),
        known.caller,
        known.observed,
    )


def _plain(device: Device) -> str:
    """A device as programs read it: ``cpu``, ``cuda:1``, an expression, or ``module`` for wherever its module is."""
    if device.kind is Kind.SYMBOL:
        return {Role.INPUT: f"{device.text}.device", Role.PLACE: "module"}.get(device.role or Role.DEVICE, device.text)
    return "cpu" if device.kind is Kind.CPU else str(device).strip("`")


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
    return [
        replace(answer, span=script.in_cell(answer.span), story=script.story(answer.story, answer.filename))
        for answer in answers
    ]


def where_in_notebook(
    data: bytes, filename: str, place: tuple[int, int], name: str, column: int, project: ProjectView | None
) -> list[Answer]:
    """What is known of the names in a line of a notebook's cell; a ConfigError says that it cannot be read."""
    from devlint.source.notebook.cells import NotebookError, read
    from devlint.source.notebook.script import Script

    try:
        notebook = read(data)
    except NotebookError as error:
        raise ConfigError(f"{filename}: {error}") from error
    if not 1 <= place[0] <= len(notebook.cells):
        raise NoSuchNameError(f"there is no such cell: the notebook has {len(notebook.cells)}")
    text = notebook.cells[place[0] - 1].text
    return where_in_cell(Script.read(notebook), text, filename, place, name, column, project)
