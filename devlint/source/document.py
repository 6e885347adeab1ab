"""A file's text, edited so that every byte outside the edits stays what it is."""

from __future__ import annotations

import codecs
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from devlint.finding import Edit, Span
from devlint.source.text import NEWLINE, ParseFailure, decode, encoding_of


class UnfixableError(Exception):
    """The fixes of a file cannot be applied; the text says why, in one line."""


@dataclass(frozen=True)
class Change:
    """An edit in terms of the text: what stands between two offsets gives way to something else."""

    start: int
    end: int
    content: str

    def meets(self, other: Change) -> bool:
        """Whether the two touch, so that they cannot be made without regard to each other."""
        return self.start <= other.end and other.start <= self.end


@dataclass(frozen=True)
class Document:
    """A text, and how it is written in bytes."""

    text: str
    encoding: str
    mark: bytes
    """The byte order mark, or nothing."""

    @classmethod
    def read(cls, data: bytes) -> Document:
        """The document of a file that can be decoded."""
        text, encoding = decode(data), encoding_of(data)
        if isinstance(text, ParseFailure) or isinstance(encoding, ParseFailure):
            raise UnfixableError("it cannot be decoded")
        document = cls(text, encoding, codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b"")
        if document.data() != data:
            # An encoding that has several ways to write the same text.
            raise UnfixableError(f"it could not be written back byte by byte in its encoding, {encoding}")
        return document

    def data(self) -> bytes:
        """The bytes of the file."""
        try:
            return self.mark + self.text.encode(self.encoding)
        except UnicodeError as error:
            raise UnfixableError(f"its new text cannot be written in its encoding, {self.encoding}") from error

    def change(self, edit: Edit) -> Change:
        """What an edit changes; its lines end as the lines in their place do."""
        start, end = (
            self._offset(edit.span.row, edit.span.column),
            self._offset(edit.span.end_row, edit.span.end_column),
        )
        if start > end:
            raise UnfixableError(f"there is no such place in it as {_shown(edit.span)}")
        first, *rest = edit.content.split("\n")
        content = first
        for number, line in enumerate(rest):
            row = edit.span.row + number
            content += self._end(row if row < edit.span.end_row else edit.span.row) + line
        return Change(start, end, content)

    def changed(self, changes: Iterable[Change]) -> Document:
        """The document after changes that do not overlap."""
        pieces, reached = [], 0
        for change in sorted(set(changes), key=lambda change: (change.start, change.end)):
            pieces += [self.text[reached : change.start], change.content]
            reached = change.end
        return Document("".join([*pieces, self.text[reached:]]), self.encoding, self.mark)

    def _offset(self, row: int, column: int) -> int:
        starts, ends = self._rows
        if not (1 <= row <= len(starts) and 1 <= column <= ends[row - 1].start - starts[row - 1] + 1):
            raise UnfixableError(f"there is no such place in it as {row}:{column}")
        return starts[row - 1] + column - 1

    def _end(self, row: int) -> str:
        """How a row ends; the last one, as the one before it."""
        _, ends = self._rows
        return ends[row - 1].text or (ends[row - 2].text if row > 1 else "") or "\n"

    @cached_property
    def _rows(self) -> tuple[list[int], list[_End]]:
        """Where each row begins, and where and how it ends."""
        ends = [_End(match.start(), match[0]) for match in NEWLINE.finditer(self.text)]
        return [0, *(end.start + len(end.text) for end in ends)], [*ends, _End(len(self.text), "")]


@dataclass(frozen=True, slots=True)
class _End:
    start: int
    text: str


class Changes:
    """A set of changes of which no two meet, to which more can be added."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._sorted: list[Change] = []

    def take(self, changes: Iterable[Change]) -> bool:
        """Add the changes of one fix, all or none: they may not meet those of another, but may be the same."""
        new = sorted(set(changes) - set(self._near(changes)), key=lambda change: change.start)
        if any(change.meets(other) for change in new for other in self._near([change])):
            return False
        for change in new:
            at = bisect_left(self._starts, change.start)
            self._starts.insert(at, change.start)
            self._sorted.insert(at, change)
        return True

    def _near(self, changes: Iterable[Change]) -> list[Change]:
        """The changes around others: since none of them meet, no more than a few can."""
        found = []
        for change in changes:
            first, last = bisect_left(self._starts, change.start), bisect_left(self._starts, change.end + 1)
            found += self._sorted[max(first - 1, 0) : last]
        return found


def _shown(span: Span) -> str:
    return f"{span.row}:{span.column} to {span.end_row}:{span.end_column}"
