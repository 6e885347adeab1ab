"""A notebook as one piece of Python code, from its first cell to its last, and the way back into the cells."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import count

from devlint.finding import Edit, Finding, Place, Span, elsewhere
from devlint.source.document import UnfixableError
from devlint.source.notebook.cells import Notebook
from devlint.source.notebook.magics import MARK, SkippedCell, plain, restored
from devlint.source.text import ParseFailure, split_lines

_HEAD = f"# {MARK}; coding: utf-8\n"
"""Comes first, so that no comment of a cell can ask for another encoding."""
_INDENTED = f"if 1:  # {MARK} indented;\n"
"""Comes before a cell that begins further in than it may."""
_BORDER = re.compile(rf"^pass  # {MARK} cell (\d+);$", re.MULTILINE)
_RAISED = re.compile(rf"^# {MARK} raised (.*)$", re.MULTILINE)
"""Comes last: a line of code that raises, and the notebook shows how."""


@dataclass(frozen=True, slots=True)
class Script:
    """The code of a notebook's cells: ``cells`` are the numbers of those that are in it, ``broken`` what is no Python.

    ``replaced`` are the lines of IPython by the marks that stand for them. ``text`` changes when it is fixed.
    """

    text: str
    replaced: dict[str, str]
    cells: tuple[int, ...]
    broken: tuple[tuple[int, ParseFailure], ...] = ()
    _starts: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, cells: Iterable[tuple[int, str]]) -> Script:
        """The script of numbered texts of cells."""
        numbers, replaced = count(1), dict[str, str]()
        parts, good, broken = [_HEAD], [], []
        for number, text in cells:
            try:
                found = plain(text, numbers)
            except SkippedCell:
                continue
            if isinstance(found, ParseFailure):
                broken.append((number, found))
                continue
            good.append(number)
            replaced |= found.replaced
            # a statement between the cells: no comment of one speaks of another, and no fix reaches across
            parts += [_INDENTED if found.indented else "", found.text, f"\npass  # {MARK} cell {number};\n"]
        text = "".join(parts)
        return cls(text, replaced, tuple(good), tuple(broken), _starts(text))

    @classmethod
    def read(cls, notebook: Notebook) -> Script:
        """The script of a notebook; what is no Python in a cell that nobody ran, where others were run, is a note."""
        script = cls.of((cell.number, cell.text) for cell in notebook.cells if cell.code)
        run = {cell.number for cell in notebook.cells if cell.run}
        raised = dict.fromkeys(line for cell in notebook.cells for line in cell.raised if "devlint" not in line)
        shown = "".join(f"# {MARK} raised {line}\n" for line in raised if len(split_lines(line)) == 1)
        broken = tuple(one for one in script.broken if not run or one[0] in run)
        return replace(script, text=script.text + shown, broken=broken)

    def with_text(self, text: str) -> Script:
        """The script with another text; an UnfixableError says that the cells cannot be told in it."""
        script = replace(self, text=text, _starts=_starts(text))
        if tuple(int(match[1]) for match in _BORDER.finditer(text)) != self.cells:
            raise UnfixableError("its cells cannot be told from each other any more; please report it")
        return script

    def texts(self) -> dict[int, str]:
        """The texts of the cells, as they are in the notebook; an UnfixableError says that something would be lost."""
        texts, reached = {}, 0
        for match in _BORDER.finditer(self.text):
            body = self.text[reached : match.start()].removesuffix("\n")
            reached = match.end() + 1
            texts[int(match[1])] = body.removeprefix(_HEAD).removeprefix(_INDENTED)
        whole = "\n".join(texts.values())
        if sorted(re.findall(rf"{MARK} \d+;", whole)) != sorted(self.replaced):
            raise UnfixableError("a magic of IPython would be lost; please report it")
        return {
            number: "\n".join(restored(line, self.replaced) for line in text.split("\n"))
            for number, text in texts.items()
        }

    def row(self, cell: int, row: int) -> int | None:
        """The row of the script for a row of a cell, ``None`` where the cell is not in it."""
        return None if cell not in self.cells else self._starts[self.cells.index(cell)] + row - 1

    def located(self, finding: Finding) -> Finding:
        """The finding at its place in a cell."""
        context, fix = finding.context, finding.fix
        if context is not None:
            first, last = (self.in_cell(Span(row, 1, row, 1)).row for row in context.rows)
            context = replace(context, rows=(first, max(first, last)))
        return replace(
            finding,
            span=self.in_cell(finding.span),
            related=self.story(finding.related, finding.filename),
            fix=fix and replace(fix, edits=tuple(Edit(self.in_cell(edit.span), edit.content) for edit in fix.edits)),
            context=context,
        )

    def story(self, places: Iterable[Place], filename: str) -> tuple[Place, ...]:
        """Places, those in the script as ones of its cells."""
        return elsewhere(places, filename, lambda place: replace(place, span=self.in_cell(place.span)))

    def in_cell(self, span: Span) -> Span:
        """A place of the script as one of a cell; what is between two cells is the end of the first."""
        at = max(bisect_right(self._starts, span.row) - 1, 0)
        if at >= len(self.cells):
            return span
        before = self._starts[at] - 1
        return Span(
            max(span.row - before, 1), span.column, max(span.end_row - before, 1), span.end_column, self.cells[at]
        )


def raised(text: str) -> frozenset[str]:
    """The lines of code of which the notebook with this script shows that they raise an error about devices."""
    return frozenset(_RAISED.findall(text))


def _starts(text: str) -> list[int]:
    """The rows in which the cells begin."""
    lines = split_lines(text)
    rows = [1, *(row for row, line in enumerate(lines, 1) if _BORDER.fullmatch(line))]
    # the row after the head or a border, counted from 1, is the item of that row's own number, counted from 0
    return [row + 1 + (lines[row] + "\n" == _INDENTED) for row in rows[:-1]]
