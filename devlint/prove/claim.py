"""What a finding claims, as the process reads it that is to show it."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from devlint import finding as findings
from devlint.finding import Finding

FIRST, LAST = 101, 108
"""The rules whose findings can be proven."""
_ON_ONE_PATH = "on one path, on the other"
_IN_PARTS = "this branch"
Span = tuple[int, int, int, int]
"""The first and the last row and column, as findings count."""


@dataclass(frozen=True)
class Rows:
    """A place in a file: its first and its last row."""

    file: str
    first: int
    last: int

    def hold(self, file: str, first: int, last: int) -> bool:
        """Whether some rows of a file overlap it."""
        return file == self.file and first <= self.last and self.first <= last


@dataclass(frozen=True)
class Claim:
    """A finding, without what only people read; ``related`` are the places of its story, with its own file's name."""

    code: str
    message: str
    file: str
    span: Span
    related: tuple[Rows, ...] = ()
    beside: tuple[Span, ...] = ()
    """Where other findings of the same rule are, whose mistakes may do the same harm."""

    @staticmethod
    def of(finding: Finding, others: Iterable[Finding] = ()) -> Claim:
        """The claim of a finding in a file that is no notebook, in which there are others."""
        own = os.path.realpath(finding.filename)
        beside = [one.span for one in others if one.code == finding.code and one.span != finding.span]
        return Claim(
            finding.code,
            finding.message,
            own,
            _positions(finding.span),
            tuple(
                Rows(os.path.realpath(place.filename or own), place.span.row, place.span.end_row)
                for place in finding.related
            ),
            tuple(map(_positions, beside)),
        )

    @staticmethod
    def read(text: dict[str, Any]) -> Claim:
        """The claim that `written` wrote."""
        related = tuple(Rows(**place) for place in text["related"])
        beside = tuple(tuple(span) for span in text["beside"])
        return Claim(text["code"], text["message"], text["file"], tuple(text["span"]), related, beside)

    def written(self) -> dict[str, Any]:
        """The claim for JSON."""
        return asdict(self)

    @property
    def rows(self) -> Rows:
        """Where the finding is."""
        return Rows(self.file, self.span[0], self.span[2])

    @property
    def harm(self) -> tuple[Rows, ...]:
        """Where what it says can happen: its own place, and those of its story."""
        return (self.rows, *self.related)

    @property
    def is_of_a_path(self) -> bool:
        """Whether the operands meet elsewhere than in the place of the finding, which only leads there."""
        return _ON_ONE_PATH in self.message or self.message.startswith(_IN_PARTS)


def is_provable(code: str) -> bool:
    """Whether a rule's findings can be proven."""
    return re.fullmatch(r"DVL\d{3}", code) is not None and FIRST <= int(code[3:]) <= LAST


def node_at(tree: ast.AST, lines: list[str], span: Span) -> ast.expr | None:
    """The expression that a finding underlines; of what is assigned to, the value."""
    inner: list[ast.stmt] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.expr) and node.lineno == span[0] and _span(node, lines) == span:
            if not isinstance(getattr(node, "ctx", ast.Load()), ast.Store):
                return node
        elif isinstance(node, ast.stmt) and not hasattr(node, "body") and _covers(_span(node, lines), span):
            inner.append(node)
    value = getattr(inner[-1], "value", None) if inner else None
    return value if isinstance(value, ast.expr) else None


def _positions(span: findings.Span) -> Span:
    return span.row, span.column, span.end_row, span.end_column


def _span(node: ast.expr | ast.stmt, lines: list[str]) -> Span:
    def column(row: int, offset: int) -> int:
        return len(lines[row - 1].encode()[:offset].decode("utf-8", "replace")) + 1

    end = node.end_lineno or node.lineno
    return node.lineno, column(node.lineno, node.col_offset), end, column(end, node.end_col_offset or 0)


def _covers(outer: Span, inner: Span) -> bool:
    return outer[:2] <= inner[:2] and inner[2:] <= outer[2:]
