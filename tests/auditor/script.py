"""A script on disk, and the frames that code in it would have had."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from pathlib import Path

from devlint.record import Frame


class Script:
    """Code in a file; frames are found by the text of the expression that was running."""

    def __init__(self, path: Path, code: str) -> None:
        self.path = path
        self.text = textwrap.dedent(code).lstrip("\n")
        path.write_text(self.text, encoding="utf-8")

    def at(self, expression: str, occurrence: int = 0, function: str = "") -> Frame:
        """The frame of an expression, as Python 3.11 knows it: columns count bytes."""
        start = -1
        for _ in range(occurrence + 1):
            start = self.text.index(expression, start + 1)
        line, column = self._place(start)
        end_line, end_column = self._place(start + len(expression))
        return Frame(
            file=str(self.path), line=line, function=function, column=column, end_line=end_line, end_column=end_column
        )

    def line(self, expression: str) -> Frame:
        """The same, as Python 3.10 knows it."""
        return replace(self.at(expression), column=None, end_line=None, end_column=None)

    def _place(self, offset: int) -> tuple[int, int]:
        before = self.text[:offset]
        return before.count("\n") + 1, len(before.rpartition("\n")[2].encode())
