"""What is open in the editor: texts, the positions in them as the editor counts, and what changes in one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import accumulate, takewhile

from lsprotocol import types

from devlint.finding import Span
from devlint.report.formats.exchange import utf8, utf16
from devlint.source.syntax import line_starts
from devlint.source.text import NEWLINE, split_lines

_Encoding = types.PositionEncodingKind | str


@dataclass(frozen=True, slots=True)
class Part:
    """One text of the editor: a file, or a cell of a notebook with its number there (from 1; a file has 0).

    ``encoding`` is how positions in it are counted.
    """

    uri: str
    text: str
    version: int | None = None
    cell: int = 0
    encoding: _Encoding = types.PositionEncodingKind.Utf16

    def place(self, span: Span) -> types.Range:
        """A span, in characters from 1, as the editor counts: from 0, in the units of the encoding."""
        lines = split_lines(self.text)
        start, end = (span.row, span.column), (span.end_row, span.end_column)
        return types.Range(self._position(lines, *start), self._position(lines, *end))

    def column(self, position: types.Position) -> tuple[int, int]:
        """The row and the column, in characters from 1, of a position of the editor."""
        lines = split_lines(self.text)
        line = lines[position.line] if position.line < len(lines) else ""
        return position.line + 1, _characters(line, position.character, self.encoding) + 1

    def edits(self, after: str) -> list[types.TextEdit]:
        """What has to change for another text, as little of it as lines with their common ends show."""
        return [
            types.TextEdit(types.Range(self._at(start), self._at(end)), content)
            for start, end, content in _changes(self.text, after)
        ]

    def _at(self, offset: int) -> types.Position:
        row, begin = 0, 0
        for match in NEWLINE.finditer(self.text, 0, offset):
            row, begin = row + 1, match.end()
        return types.Position(row, units(self.text[begin:offset], self.encoding))

    def _position(self, lines: list[str], row: int, column: int) -> types.Position:
        line = lines[row - 1] if 0 < row <= len(lines) else ""
        return types.Position(max(row - 1, 0), units(line[: max(column - 1, 0)], self.encoding))


def units(text: str, encoding: _Encoding) -> int:
    """The length of a text in the units of an encoding."""
    if encoding == types.PositionEncodingKind.Utf32:
        return len(text)
    return utf8(text) if encoding == types.PositionEncodingKind.Utf8 else utf16(text)


def _characters(line: str, count: int, encoding: _Encoding) -> int:
    """How many characters of a line the first ``count`` units are; the end of the line where it has no more."""
    if line.isascii():
        return min(count, len(line))
    seen = 0
    for at, char in enumerate(line):
        if seen >= count:
            return at
        seen += units(char, encoding)
    return len(line)


def changed(text: str, change: types.TextDocumentContentChangeEvent, encoding: _Encoding) -> str:
    """A text after a change that the editor tells."""
    if isinstance(change, types.TextDocumentContentChangeWholeDocument):
        return change.text
    starts, lines = line_starts(text), split_lines(text)

    def offset(position: types.Position) -> int:
        if position.line >= len(starts):
            return len(text)
        return starts[position.line] + _characters(lines[position.line], position.character, encoding)

    start, end = offset(change.range.start), offset(change.range.end)
    return text[:start] + change.text + text[max(start, end) :]


def _changes(before: str, after: str) -> Iterator[tuple[int, int, str]]:
    """The differences of two texts: from where to where, and what comes there."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    starts = list(accumulate(map(len, old), initial=0))
    for tag, first, last, start, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        gone, content = "".join(old[first:last]), "".join(new[start:end])
        ahead = _common(gone, content)
        ahead -= _splits(gone, ahead)
        behind = _common(gone[ahead:][::-1], content[ahead:][::-1])
        behind -= behind > 0 and _splits(gone, len(gone) - behind)
        yield starts[first] + ahead, starts[last] - behind, content[ahead : len(content) - behind]


def _splits(text: str, at: int) -> bool:
    """Whether a place is within a line end of two characters, where no position of an editor leads."""
    return text[max(at - 1, 0) : at + 1] == "\r\n"


def _common(first: str, second: str) -> int:
    """With how many characters both texts begin."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A file or a notebook as it is at a moment, with the texts of all files that are open."""

    uri: str
    filename: str
    parts: tuple[Part, ...]
    notebook: bool
    unsaved: Mapping[str, str]
    folder: str = ""
    """The folder of the workspace that it lies in, empty if in none."""
    versioned: bool = False
    """Whether the editor takes changes that hold for one version of a text alone."""

    def part(self, cell: int) -> Part | None:
        """The part that is a cell, or the file."""
        return next((part for part in self.parts if part.cell == cell), None)

    def at(self, uri: str) -> Part | None:
        """The part that the editor calls so."""
        return next((part for part in self.parts if part.uri == uri), None)
