"""A file's text, edited so that every byte outside the edits stays what it is."""

from __future__ import annotations

import codecs
from bisect import bisect_left
from collections.abc import Iterable
from functools import cached_property

from devlint.finding import Edit
from devlint.immutable import immutable
from devlint.source.text import NEWLINE, ParseFailure, decode, encoding_of


class UnfixableError(Exception):
    """The fixes of a file cannot be applied; the text says why, in one line."""


@immutable(frozen=True, slots=True)
class Change:
    """An edit in terms of the text: what stands between two offsets gives way to something else."""

    start: int
    end: int
    content: str


@immutable(frozen=True, slots=False)
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
        span = edit.span
        start, end = self._offset(span.row, span.column), self._offset(span.end_row, span.end_column)
        if start > end:
            raise UnfixableError(
                f"there is no such place in it as {span.row}:{span.column} to {span.end_row}:{span.end_column}"
            )
        content, *rest = edit.content.split("\n")
        for row, line in enumerate(rest, span.row):
            content += self._end(row if row < span.end_row else span.row) + line
        return Change(start, end, content)

    def changed(self, changes: Iterable[Change]) -> Document:
        """The document after changes that do not overlap."""
        pieces, reached = [], 0
        for change in sorted(set(changes), key=lambda change: (change.start, change.end)):
            pieces += [self.text[reached : change.start], change.content]
            reached = change.end
        return Document("".join([*pieces, self.text[reached:]]), self.encoding, self.mark)

    def _offset(self, row: int, column: int) -> int:
        start, end, _ = self._rows[row - 1] if 1 <= row <= len(self._rows) else (0, -1, "")
        if not 1 <= column <= end - start + 1:
            raise UnfixableError(f"there is no such place in it as {row}:{column}")
        return start + column - 1

    def _end(self, row: int) -> str:
        """How a row ends; the last one, as the one before it."""
        return self._rows[row - 1][2] or (self._rows[row - 2][2] if row > 1 else "") or "\n"

    @cached_property
    def _rows(self) -> list[tuple[int, int, str]]:
        """Where each row begins, and where and how it ends."""
        ends = [(match.start(), match[0]) for match in NEWLINE.finditer(self.text)]
        starts = [0, *(end + len(text) for end, text in ends)]
        return [(start, end, text) for start, (end, text) in zip(starts, [*ends, (len(self.text), "")], strict=True)]


class Changes:
    """A set of changes of which no two meet, to which more can be added."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._sorted: list[Change] = []

    def take(self, changes: Iterable[Change]) -> bool:
        """Add the changes of one fix, all or none: they may not meet those of another, but may be the same."""
        new = sorted(set(changes) - set(self._near(changes)), key=lambda change: change.start)
        for change in new:
            if any(change.start <= other.end and other.start <= change.end for other in self._near([change])):
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
