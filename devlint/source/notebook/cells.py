"""A notebook's cells, and where the text of each stands in the file, so that it can be changed and nothing else.

The format: https://nbformat.readthedocs.io/en/latest/format_description.html.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from json.decoder import JSONDecodeError, JSONDecoder
from typing import Any

from devlint.finding import Span
from devlint.source.text import NEWLINE, split_lines

_SPACE = re.compile(r"[ \t\n\r]*")
_ESCAPE = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|.", re.DOTALL)
_DECODER = JSONDecoder()
_OLDEST = 4
_PYTHON = frozenset({"python", "ipython", "python3"})
_NO_LANGUAGE = "plaintext"
"""What an editor writes of a language that it does not know."""


class NotebookError(Exception):
    """A file is no notebook that can be read; the text says why, ``row`` where."""

    def __init__(self, message: str, row: int = 1) -> None:
        super().__init__(message)
        self.row = row


@dataclass(frozen=True, slots=True)
class Piece:
    """One string of the JSON document that holds a cell's text, or a part of it, and its place with the quotes."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: its number (from 1, all kinds counted), whether it is Python code, its text, and where that stands.

    ``start`` and ``end`` are the place of the value of ``source``: a string, or a list of strings.
    """

    number: int
    code: bool
    pieces: tuple[Piece, ...]
    start: int
    end: int
    listed: bool

    @property
    def text(self) -> str:
        """What stands in the cell."""
        return "".join(piece.text for piece in self.pieces)


@dataclass(frozen=True, slots=True)
class Notebook:
    """A notebook: the text of the file, its byte order mark if it has one, its cells, its language in lower case."""

    raw: str
    mark: bytes
    cells: tuple[Cell, ...]
    language: str

    @property
    def is_python(self) -> bool:
        """Whether its code is Python, as far as it says."""
        return not self.language or self.language in _PYTHON

    def data(self) -> bytes:
        """The bytes of the file."""
        return self.mark + self.raw.encode("utf-8")

    def lines(self, number: int) -> list[str]:
        """The lines of a cell, none if there is no such cell."""
        return split_lines(self.cells[number - 1].text) if 0 < number <= len(self.cells) else []

    def in_file(self, span: Span) -> Span:
        """The place in the file of a span of a cell."""
        if not 0 < span.cell <= len(self.cells):
            return span
        start = self._place(span.cell, span.row, span.column)
        end = max(start, self._place(span.cell, span.end_row, span.end_column))
        return Span(*start, *end)

    def _place(self, number: int, row: int, column: int) -> tuple[int, int]:
        cell = self.cells[number - 1]
        starts = [0, *(match.end() for match in NEWLINE.finditer(cell.text))]
        left = min(starts[row - 1] + column - 1, len(cell.text)) if row <= len(starts) else len(cell.text)
        offset = cell.start
        for piece in cell.pieces:
            offset = piece.start + 1 + _escaped(self.raw, piece, min(left, len(piece.text)))
            if left < len(piece.text):
                break
            left -= len(piece.text)
        before = self.raw.rfind("\n", 0, offset)
        return self.raw.count("\n", 0, offset) + 1, offset - before


def _escaped(raw: str, piece: Piece, count: int) -> int:
    """How many characters the first ``count`` of a string take in the file."""
    at = piece.start + 1
    for _ in range(count):
        match = _ESCAPE.match(raw, at)
        at = match.end() if match else at + 1
    return at - piece.start - 1


@lru_cache(maxsize=2)
def read(data: bytes) -> Notebook:
    """Read a notebook; a NotebookError says why that cannot be done."""
    mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    try:
        raw = data[len(mark) :].decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotebookError(f"not a notebook: not valid UTF-8: {error.reason}") from error
    try:
        return _Reader(raw, mark).notebook()
    except JSONDecodeError as error:
        text = "there are merge conflicts in it" if "\n<<<<<<< " in raw else f"not valid JSON: {error.msg}"
        raise NotebookError(f"not a notebook: {text}", error.lineno) from error
    except RecursionError as error:
        raise NotebookError("not a notebook: its JSON is nested too deeply") from error


class _Reader:
    """Reads the document and keeps in mind where the cells stand; what it is not asked about is only decoded."""

    def __init__(self, raw: str, mark: bytes) -> None:
        self._raw = raw
        self._mark = mark
        self._end = self._closed = 0

    def notebook(self) -> Notebook:
        raw = self._raw
        start = self._skip(0)
        if raw[start : start + 1] != "{":
            if start == len(raw):
                raise NotebookError("not a notebook: the file is empty")
            self._value(start)
            raise NotebookError("not a notebook: its JSON is no object")
        found: dict[str, Any] = {}
        cells: tuple[Cell, ...] | None = None
        end = start
        for key, at in self._members(start):
            if key == "cells" and raw[at : at + 1] == "[":
                cells, end = self._cells(at)
            else:
                found[key], end = self._value(at)
            self._end = end
        if self._skip(self._closed) != len(raw):
            raise JSONDecodeError("Extra data", raw, self._skip(self._closed))
        version = found.get("nbformat")
        if isinstance(version, int) and version < _OLDEST:
            raise NotebookError(
                f"the notebook is of format {version}, and only 4 is read; "
                "`jupyter nbconvert --to notebook --inplace` brings it up to date"
            )
        # some tools leave the version out, and write cells as format 4 has them; the formats before it have none
        if cells is None or not isinstance(found.get("nbformat", _OLDEST), int):
            raise NotebookError(f"not a notebook: it has no {'cells' if isinstance(version, int) else 'nbformat'}")
        return Notebook(raw, self._mark, cells, _language(found.get("metadata")))

    def _cells(self, at: int) -> tuple[tuple[Cell, ...], int]:
        cells: list[Cell] = []
        for place in self._items(at):
            if self._raw[place : place + 1] != "{":
                self._value(place)
                raise NotebookError("not a notebook: a cell is no object", self._row(place))
            cells.append(self._cell(place, len(cells) + 1))
            self._end = self._closed
        return tuple(cells), self._closed

    def _cell(self, at: int, number: int) -> Cell:
        kind, code, source = "", True, None
        for key, place in self._members(at):
            value, self._end = self._value(place)
            if key == "cell_type":
                kind = value
            elif key == "source":
                source = value, place, self._end
            elif key == "metadata":
                code = _is_python_cell(value)
        if source is None:
            raise NotebookError(f"not a notebook: cell {number} has no source", self._row(at))
        value, start, end = source
        if isinstance(value, str):
            return Cell(number, kind == "code" and code, (Piece(value, start, end),), start, end, False)
        if not isinstance(value, list) or not all(isinstance(line, str) for line in value):
            raise NotebookError(f"not a notebook: the source of cell {number} is no text", self._row(start))
        closed, pieces = self._closed, []
        for place in self._items(start):
            text, self._end = self._value(place)
            pieces.append(Piece(text, place, self._end))
        self._closed = closed
        return Cell(number, kind == "code" and code, tuple(pieces), start, end, True)

    def _members(self, at: int) -> Iterator[tuple[str, int]]:
        """The keys of an object, each with the place of its value, whose end has to be in ``_end`` before the next."""
        for place in self._items(at):
            if self._raw[place : place + 1] != '"':
                raise JSONDecodeError("Expecting property name enclosed in double quotes", self._raw, place)
            key, after = self._value(place)
            colon = self._skip(after)
            if self._raw[colon : colon + 1] != ":":
                raise JSONDecodeError("Expecting ':' delimiter", self._raw, colon)
            yield key, self._skip(colon + 1)

    def _items(self, at: int) -> Iterator[int]:
        """The places of what stands between brackets, each to be followed by its ``_end``; then ``_closed`` is set."""
        raw = self._raw
        close = "}" if raw[at] == "{" else "]"
        at = self._skip(at + 1)
        if raw[at : at + 1] == close:
            self._closed = at + 1
            return
        while True:
            yield at
            at = self._skip(self._end)
            if raw[at : at + 1] == close:
                self._closed = at + 1
                return
            if raw[at : at + 1] != ",":
                raise JSONDecodeError("Expecting ',' delimiter", raw, at)
            at = self._skip(at + 1)

    def _value(self, at: int) -> tuple[Any, int]:
        try:
            return _DECODER.raw_decode(self._raw, at)
        except StopIteration as error:
            raise JSONDecodeError("Expecting value", self._raw, at) from error
        except JSONDecodeError:
            raise
        except ValueError as error:  # an integer longer than Python's limit
            raise NotebookError(f"not a notebook: {error}", self._row(at)) from error

    def _skip(self, at: int) -> int:
        match = _SPACE.match(self._raw, at)
        return match.end() if match else at

    def _row(self, at: int) -> int:
        return self._raw.count("\n", 0, at) + 1


def _language(metadata: object) -> str:
    if not isinstance(metadata, dict):
        return ""
    for table, key in (("language_info", "name"), ("kernelspec", "language")):
        held = metadata.get(table)
        if isinstance(held, dict) and isinstance(held.get(key), str) and held[key] != _NO_LANGUAGE:
            return str(held[key]).lower()
    return ""


def _is_python_cell(metadata: object) -> bool:
    """Whether a cell is in the notebook's language, as far as an editor has noted another one."""
    held = metadata.get("vscode") if isinstance(metadata, dict) else None
    language = held.get("languageId") if isinstance(held, dict) else None
    return not isinstance(language, str) or language in _PYTHON


def in_file(path: str, span: Span) -> Span:
    """The place in a file of a span of one of its cells; the span itself if it can no longer be read."""
    try:
        with open(path, "rb") as stream:
            notebook = parsed(stream.read())
    except (OSError, ValueError):
        return span
    return span if notebook is None else notebook.in_file(span)


def parsed(data: bytes) -> Notebook | None:
    """The notebook that a file holds, ``None`` where it is none."""
    try:
        return read(data)
    except NotebookError:
        return None


def written(notebook: Notebook, texts: dict[int, str]) -> bytes:
    """The file with other texts in some cells, by number: of these only the lines that differ are written anew."""
    raw, reached, parts = notebook.raw, 0, []
    for number, text in sorted(texts.items()):
        cell = notebook.cells[number - 1]
        if text != cell.text:
            parts += [raw[reached : cell.start], _source(raw, cell, text)]
            reached = cell.end
    return notebook.mark + "".join([*parts, raw[reached:]]).encode("utf-8")


def _source(raw: str, cell: Cell, text: str) -> str:
    """The JSON of a cell's new text."""
    escapes = raw.isascii()
    if not cell.listed:
        return json.dumps(text, ensure_ascii=escapes)
    lines = _split_like(cell, text)
    old = [piece.text for piece in cell.pieces]
    kept = _kept(old, lines)
    written = [_json(raw, cell.pieces[kept[at]] if at in kept else None, line) for at, line in enumerate(lines)]
    if not written or not cell.pieces:
        return json.dumps(lines, ensure_ascii=escapes)
    opening = raw[cell.start : cell.pieces[0].start]
    closing = raw[cell.pieces[-1].end : cell.end]
    between = raw[cell.pieces[0].end : cell.pieces[1].start] if len(old) > 1 else f",{opening[1:]}"
    if len(old) == 1 and not opening[1:]:
        between = ", "
    return f"{opening}{between.join(written)}{closing}"


def _json(raw: str, piece: Piece | None, line: str) -> str:
    return json.dumps(line, ensure_ascii=raw.isascii()) if piece is None else raw[piece.start : piece.end]


def _kept(old: list[str], new: list[str]) -> dict[int, int]:
    """Which of the new lines are old ones, and which."""
    from difflib import SequenceMatcher

    blocks = SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    return {block.b + step: block.a + step for block in blocks for step in range(block.size)}


def _split_like(cell: Cell, text: str) -> list[str]:
    """A text in lines as the cell has them: nbformat splits where Python's ``splitlines`` does, others at newlines."""
    old = [piece.text for piece in cell.pieces]
    if old == cell.text.splitlines(keepends=True):
        return text.splitlines(keepends=True)
    return re.findall(r"[^\n]*\n|[^\n]+", text)
