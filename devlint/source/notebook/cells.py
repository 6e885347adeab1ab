"""A notebook's cells, and where the text of each stands in the file, so that it can be changed and nothing else.

The format: https://nbformat.readthedocs.io/en/latest/format_description.html.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from json.decoder import JSONArray, JSONDecodeError, JSONDecoder, JSONObject  # type: ignore[attr-defined]  # what reads the members of a value may be told how
from typing import Any, NamedTuple

from devlint.finding import Span
from devlint.source.files import held
from devlint.source.text import NEWLINE, split_lines

_SPACE = re.compile(r"[ \t\n\r]*")
_ESCAPE = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|.", re.DOTALL)
_DECODER = JSONDecoder()
_OLDEST = 4
_PYTHON = frozenset({"python", "ipython", "python3"})
_NO_LANGUAGE = "plaintext"
"""What an editor writes of a language that it does not know."""
_OF_DEVICES = re.compile(r"(?i)\bsame device\b|\btwo devices\b|\bdevice type tensor\b|input type .* and weight type")
"""What torch says of tensors that are not on the device where they are used."""
_POINTED_AT = re.compile(r"^-+> *\d+ +(\S.*?) *$", re.MULTILINE)
"""The line of code that a frame of a traceback of IPython points at."""
_COLOR = re.compile(r"\x1b\[[0-9;]*m")


class NotebookError(Exception):
    """A file is no notebook that can be read; the text says why, ``row`` where."""

    def __init__(self, message: str, row: int = 1) -> None:
        super().__init__(message)
        self.row = row


class Piece(NamedTuple):
    """A value of the JSON document and its place: a string, with the quotes, is a cell's text or a part of it."""

    value: Any
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: its number (from 1, all kinds counted), whether it is Python code, its text, and where that stands.

    ``run`` is whether the notebook keeps a count of its run, ``raised`` the lines of code in the traceback of an error
    about devices that it keeps. ``start`` and ``end`` are the place of the value of ``source``: a string, or a list of
    strings.
    """

    number: int
    code: bool
    pieces: tuple[Piece, ...]
    start: int
    end: int
    listed: bool
    run: bool = False
    raised: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """What stands in the cell."""
        return "".join(piece.value for piece in self.pieces)


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
            offset = piece.start + 1 + _escaped(self.raw, piece, min(left, len(piece.value)))
            if left < len(piece.value):
                break
            left -= len(piece.value)
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
        return _document(raw, mark)
    except JSONDecodeError as error:
        text = "there are merge conflicts in it" if "\n<<<<<<< " in raw else f"not valid JSON: {error.msg}"
        raise NotebookError(f"not a notebook: {text}", error.lineno) from error
    except RecursionError as error:
        raise NotebookError("not a notebook: its JSON is nested too deeply") from error


_Scan = Callable[[str, int], tuple[Any, int]]
"""Reads the value at a place: the value, and where it ends."""


def _document(raw: str, mark: bytes) -> Notebook:
    """Read the document, and where the cells stand in it; what nobody asks about is only decoded."""
    start = _skip(raw, 0)
    if start == len(raw):
        return Notebook(raw, mark, (), "")
    if raw[start] != "{":
        _value(raw, start)
        raise NotebookError("not a notebook: its JSON is no object")
    found, end = JSONObject((raw, start + 1), True, _listed(_cell), None, None)
    if _skip(raw, end) != len(raw):
        raise JSONDecodeError("Extra data", raw, _skip(raw, end))
    version, cells = found.get("nbformat"), found.get("cells")
    if isinstance(version, int) and version < _OLDEST:
        raise NotebookError(
            f"the notebook is of format {version}, and only 4 is read; "
            "`jupyter nbconvert --to notebook --inplace` brings it up to date"
        )
    # some tools leave the version out, and write cells as format 4 has them; the formats before it have none
    if not isinstance(cells, list) or not isinstance(found.get("nbformat", _OLDEST), int):
        raise NotebookError(f"not a notebook: it has no {'cells' if isinstance(version, int) else 'nbformat'}")
    cells = tuple(_read_cell(raw, cell, number) for number, cell in enumerate(cells, 1))
    return Notebook(raw, mark, cells, _language(found.get("metadata")))


def _read_cell(raw: str, cell: Piece, number: int) -> Cell:
    if not isinstance(cell.value, dict):
        raise NotebookError("not a notebook: a cell is no object", _row(raw, cell.start))
    parts: dict[str, Piece] = cell.value
    source, kind, metadata = (parts.get(key) for key in ("source", "cell_type", "metadata"))
    if source is None:
        raise NotebookError(f"not a notebook: cell {number} has no source", _row(raw, cell.start))
    listed = isinstance(source.value, list)
    pieces = source.value if listed else [source]
    if not all(isinstance(piece.value, str) for piece in pieces):
        raise NotebookError(f"not a notebook: the source of cell {number} is no text", _row(raw, source.start))
    # whether a cell is in the notebook's language, as far as an editor has noted another one
    held = metadata.value.get("vscode") if metadata is not None and isinstance(metadata.value, dict) else None
    language = held.get("languageId") if isinstance(held, dict) else None
    python = not isinstance(language, str) or language in _PYTHON
    code = kind is not None and kind.value == "code" and python
    count = parts.get("execution_count")
    run = count is not None and isinstance(count.value, int)
    raised = _raised(parts.get("outputs"))
    return Cell(number, code, tuple(pieces), source.start, source.end, listed, run, raised)


def _raised(outputs: Piece | None) -> tuple[str, ...]:
    """The lines that the tracebacks among the outputs of a cell point at, of errors about devices."""
    listed = outputs.value if outputs is not None and isinstance(outputs.value, list) else []
    errors = [piece.value for piece in listed if isinstance(piece.value, dict) and "evalue" in piece.value]
    told = [error for error in errors if _OF_DEVICES.search(str(error["evalue"]))]
    lines = [str(line) for error in told if isinstance(error.get("traceback"), list) for line in error["traceback"]]
    return tuple(_POINTED_AT.findall(_COLOR.sub("", "\n".join(lines))))


def _value(raw: str, at: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(raw, at)
    except JSONDecodeError:
        raise
    except ValueError as error:  # an integer longer than Python's limit
        raise NotebookError(f"not a notebook: {error}", _row(raw, at)) from error


def _placed(scan: _Scan) -> _Scan:
    """What scans a value, and keeps in mind where that stands."""

    def scanned(raw: str, at: int) -> tuple[Piece, int]:
        value, end = scan(raw, at)
        return Piece(value, at, end), end

    return scanned


def _listed(scan: _Scan) -> _Scan:
    """What scans a value, in a list one after the other with their places."""

    def scanned(raw: str, at: int) -> tuple[Any, int]:
        found: tuple[Any, int] = JSONArray((raw, at + 1), _placed(scan)) if raw[at : at + 1] == "[" else _value(raw, at)
        return found

    return scanned


def _cell(raw: str, at: int) -> tuple[Any, int]:
    """Scan a cell, each of its members with its place."""
    if raw[at : at + 1] != "{":
        return _value(raw, at)
    found: tuple[Any, int] = JSONObject((raw, at + 1), True, _placed(_listed(_value)), None, None)
    return found


def _skip(raw: str, at: int) -> int:
    match = _SPACE.match(raw, at)
    return match.end() if match else at


def _row(raw: str, at: int) -> int:
    return raw.count("\n", 0, at) + 1


def _language(metadata: object) -> str:
    if not isinstance(metadata, dict):
        return ""
    for table, key in (("language_info", "name"), ("kernelspec", "language")):
        held = metadata.get(table)
        if isinstance(held, dict) and isinstance(held.get(key), str) and held[key] != _NO_LANGUAGE:
            return str(held[key]).lower()
    return ""


def in_file(path: str, span: Span) -> Span:
    """The place in a file of a span of one of its cells; the span itself if it can no longer be read."""
    notebook = parsed(held(path) or b"")
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
    from difflib import SequenceMatcher

    escapes = raw.isascii()
    if not cell.listed:
        return json.dumps(text, ensure_ascii=escapes)
    old = [piece.value for piece in cell.pieces]
    # nbformat splits where Python's `splitlines` does, others at newlines
    like_python = old == cell.text.splitlines(keepends=True)
    lines = text.splitlines(keepends=True) if like_python else re.findall(r"[^\n]*\n|[^\n]+", text)
    if not lines or not cell.pieces:
        return json.dumps(lines, ensure_ascii=escapes)
    written = [json.dumps(line, ensure_ascii=escapes) for line in lines]
    for block in SequenceMatcher(None, old, lines, autojunk=False).get_matching_blocks():
        for step in range(block.size):
            piece = cell.pieces[block.a + step]
            written[block.b + step] = raw[piece.start : piece.end]
    opening = raw[cell.start : cell.pieces[0].start]
    closing = raw[cell.pieces[-1].end : cell.end]
    between = raw[cell.pieces[0].end : cell.pieces[1].start] if len(old) > 1 else f",{opening[1:]}"
    if len(old) == 1 and not opening[1:]:
        between = ", "
    return f"{opening}{between.join(written)}{closing}"
