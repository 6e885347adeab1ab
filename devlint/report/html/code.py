"""Code as data: the lines that are known, each in pieces that are coloured alike."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

_PLAIN = " "
_LETTERS = (
    ("Token.Keyword", "k"),
    ("Token.Operator.Word", "k"),
    ("Token.Comment", "c"),
    ("Token.Literal.String", "s"),
    ("Token.Literal.Number", "n"),
    ("Token.Name.Function", "f"),
    ("Token.Name.Class", "f"),
    ("Token.Name.Decorator", "d"),
    ("Token.Name.Builtin", "b"),
)
"""The colours: by how the name of a token of Pygments begins."""


def chunks(lines: Sequence[str | None]) -> list[list[Any]]:
    """Lines that follow on each other, as the number of the first one and the lines.

    A line is a list of pieces, each a letter for its colour and its text; see ``script/source.js``.
    """
    found: list[list[Any]] = []
    start: int | None = None
    for index, line in enumerate([*lines, None]):
        if line is None and start is not None:
            found.append([start + 1, _coloured([text or "" for text in lines[start:index]])])
            start = None
        elif line is not None and start is None:
            start = index
    return found


def _coloured(lines: list[str]) -> list[list[str]]:
    from pygments.lexers.python import PythonLexer

    rows: list[list[str]] = [[]]
    for kind, text in PythonLexer(stripnl=False, ensurenl=False).get_tokens("\n".join(lines)):
        letter = _letter(str(kind))
        for number, part in enumerate(text.split("\n")):
            if number:
                rows.append([])
            if part and rows[-1] and rows[-1][-1][0] == letter:
                rows[-1][-1] += part
            elif part:
                rows[-1].append(letter + part)
    # a lexer that counts lines otherwise, as after a lone carriage return, must not move them
    same = len(rows) == len(lines) and all(
        "".join(piece[1:] for piece in row) == line for row, line in zip(rows, lines, strict=True)
    )
    return rows if same else [[_PLAIN + line] if line else [] for line in lines]


@cache
def _letter(kind: str) -> str:
    return next((letter for prefix, letter in _LETTERS if kind.startswith(prefix)), _PLAIN)
