"""The code that a record speaks of: how its files are called, its lines, its places."""

from __future__ import annotations

from collections.abc import Sequence

from devlint.finding import Span
from devlint.record import Frame, Record
from devlint.report.terminal import one_line, shown

_LONGEST_FILE = 1_000_000
"""Lines beyond are not believed: a record may come from anywhere."""
_INSTALLED = ("site-packages", "dist-packages")


class Code:
    """Files and lines as the record knows them; the machine that shows it need not have them."""

    def __init__(self, record: Record) -> None:
        self._sources = record.sources
        self._directory = record.directory
        self._lines: dict[str, list[str | None]] = {}
        self._files: dict[str, str] = {}

    def name(self, file: str) -> str:
        """A file as people call it: from where the run started, or from where packages are installed."""
        name = self._short(file)
        self._files.setdefault(name, file)
        return name

    def lines_by_name(self, name: str) -> Sequence[str | None]:
        """The lines of a file that :meth:`name` has called so."""
        return self.lines(self._files.get(name, name))

    def place(self, frame: Frame) -> str:
        """``train.py:12``."""
        return f"{self.name(frame.file)}:{frame.line}"

    def lines(self, file: str) -> Sequence[str | None]:
        """The lines of a file, ``None`` for those that the record lacks."""
        known = self._lines.get(file)
        if known is None:
            found = {row: line for row, line in self._sources.get(file, {}).items() if 0 < row <= _LONGEST_FILE}
            known = [None] * max(found, default=0)
            for row, line in found.items():
                known[row - 1] = line.rstrip("\r\n")
            self._lines[file] = known
        return known

    def line(self, frame: Frame) -> str:
        """The line of code at a frame, ready to be shown; empty where the record lacks it."""
        lines = self.lines(frame.file)
        line = lines[frame.line - 1] if 0 < frame.line <= len(lines) else None
        return shown((line or "").strip())

    def expression(self, frame: Frame) -> str:
        """The expression at a frame, or as much of it as stands on its first line; empty where that is not known."""
        text = self._text(frame, frame.line)
        if frame.column is None or not text:
            return ""
        end = frame.end_column if frame.end_line in (None, frame.line) else None
        part = text.encode("utf-8", "surrogatepass")[frame.column : end]
        return shown(part.decode("utf-8", "replace").strip())

    def span(self, frame: Frame) -> Span:
        """Where a frame is, in characters; the whole line where its columns are not known."""
        end_row = max(frame.end_line or frame.line, frame.line)
        start, end = self._column(frame, frame.line, frame.column), self._column(frame, end_row, frame.end_column)
        text = self._text(frame, frame.line)
        if start is None or end is None:
            return Span(frame.line, len(text) - len(text.lstrip()) + 1, frame.line, len(text.rstrip()) + 1)
        return Span(frame.line, start, end_row, end)

    def _short(self, file: str) -> str:
        # The record may come from another kind of system: both separators count, and nothing is asked of this one.
        parts, here = _parts(file), _parts(self._directory)
        for installed in _INSTALLED:
            if installed in parts:
                return one_line("/".join(parts[parts.index(installed) + 1 :]))
        inside = self._directory and len(parts) > len(here) and parts[: len(here)] == here
        return one_line("/".join(parts[len(here) :]) if inside else file)

    def _column(self, frame: Frame, row: int, column: int | None) -> int | None:
        if column is None:
            return None
        text = self._text(frame, row)
        # where the line is not known its bytes have to do
        before = text.encode("utf-8", "surrogatepass")[:column] if text else b" " * column
        return len(before.decode("utf-8", "replace")) + 1

    def _text(self, frame: Frame, row: int) -> str:
        lines = self.lines(frame.file)
        return (lines[row - 1] or "") if 0 < row <= len(lines) else ""


def _parts(path: str) -> list[str]:
    return [part for part in path.replace("\\", "/").split("/") if part]
