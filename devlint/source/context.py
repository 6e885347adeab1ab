"""What surrounds a finding: the definition, the statement, and its code as it reads without the layout."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from devlint.finding import Context, Finding, Span
from devlint.source.syntax import WITH_HOLES
from devlint.source.tree import Source

_ATOMS = (ast.Constant, ast.FormattedValue, ast.JoinedStr, ast.Name, ast.keyword)
"""What says too little by itself: a `"cuda"` is told from another one by what is around it."""
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)

_MANY = 16
_LONGEST = 120
_MOST = 4_000
"""So many characters of code tell it from any other; what is nested in what may have as many again."""
_COMMENT_OR_STRING = re.compile(
    r'''#[^\n]*|"""(?:\\.|[^\\])*?"""|\'\'\'(?:\\.|[^\\])*?\'\'\'|"(?:\\.|[^\\"\n])*"|'(?:\\.|[^\\'\n])*\'''', re.DOTALL
)
_SPACE = r"(?:\s|\\\n)+"
_LAST_COMMA = r",\s*(?=[)\]}])"
_NEEDLESS = r"(?<!\w) | (?!\w)"


def in_context(source: Source, findings: Sequence[Finding]) -> list[Finding]:
    """The findings of one file, each with what surrounds it."""
    if not findings:
        return []
    descent = _Descent(source)
    # From the outside to the inside, so that each finds most of its way in that of the one before.
    spans = {finding.span for finding in findings}
    order = sorted(spans, key=lambda span: (span.row, span.column, -span.end_row, -span.end_column))
    contexts = {span: descent.context(span) for span in order}
    return [replace(finding, context=contexts[finding.span]) for finding in findings]


def plain(code: str) -> str:
    """Code without its layout: comments, spaces, line breaks and trailing commas out, single quotes made double."""
    pieces: list[str] = []
    # A comment leaves a space; a string stays what it is, between what is not one.
    code = _COMMENT_OR_STRING.sub(lambda match: " " if match[0][0] == "#" else match[0], code)
    end = 0
    for match in _COMMENT_OR_STRING.finditer(code):
        pieces += [_squeezed(code[end : match.start()]), _quoted(match[0])]
        end = match.end()
    pieces.append(_squeezed(code[end:]))
    return "".join(pieces).strip()


def _squeezed(code: str) -> str:
    return re.sub(_NEEDLESS, "", re.sub(_LAST_COMMA, "", re.sub(_SPACE, " ", code))).replace(",", ", ")


def _quoted(string: str) -> str:
    simple = string[0] == "'" and not string.startswith("'''") and '"' not in string and "\\" not in string
    return f'"{string[1:-1]}"' if simple else string


class _Surrounding(NamedTuple):
    """A node on the way to a finding: the definitions and the innermost statement as far as there, and itself."""

    node: ast.AST
    scope: str
    statement: ast.AST | None
    telling: ast.AST | None
    """The innermost node that says enough by itself."""


class _Descent:
    """The way from the top of a file's tree to one place after the other."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._way = [_Surrounding(source.tree, "", None, None)]
        self._texts: dict[Span, str] = {}

    def context(self, span: Span) -> Context:
        """What surrounds a place."""
        source, way = self._source, self._way
        while len(way) > 1 and not _contains(source, way[-1].node, span):
            way.pop()
        while node := next(
            (node for node in _children(source, way[-1].node, span) if _contains(source, node, span)), None
        ):
            way.append(_inside(way[-1], node))
        inner = way[-1]
        if len(way) == 1:
            return Context("", self._text(span), (span.row, span.end_row))
        around = _span(source, inner.telling or inner.node) if isinstance(inner.node, _ATOMS) else span
        rows = span.row, span.end_row
        if inner.statement is not None:
            whole = _span(source, inner.statement)
            # First and last row of the innermost statement, of a compound one of its header, and of the finding itself.
            rows = min(whole.row, span.row), max(whole.end_row, span.end_row)
        return Context(inner.scope, self._text(around), rows)

    def _text(self, span: Span) -> str:
        text = self._texts.get(span)
        if text is None:
            code = self._source.slice(span)
            text = plain(code[:_MOST]) or " ".join(code.split())
            if len(text) > _LONGEST:
                from hashlib import sha256

                digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
                text = f"{text[: _LONGEST // 2]}... {digest[:12]}"
            self._texts[span] = text
        return text


def _inside(outer: _Surrounding, node: ast.AST) -> _Surrounding:
    scope, statement, telling = outer.scope, outer.statement, outer.telling
    if isinstance(node, _DEFINITIONS):
        scope = f"{scope}.{node.name}" if scope else node.name
    if isinstance(node, ast.stmt | ast.excepthandler):
        statement = node
    return _Surrounding(node, scope, statement, telling if isinstance(node, _ATOMS) else node)


def _span(source: Source, node: ast.AST) -> Span:
    """Where a node stands; of a compound statement, its header with the decorators."""
    span = source.span(node)
    body: object = getattr(node, "body", None)
    if not isinstance(body, list) or not body:
        return span
    last = max(span.row, min(_first_row(body[0]) - 1, span.end_row))
    return Span(_first_row(node), 1, last, len(source.lines[last - 1]) + 1)


def _contains(source: Source, node: ast.AST, span: Span) -> bool:
    if not _first_row(node) <= span.row <= span.end_row <= (getattr(node, "end_lineno", None) or 0):
        return False
    around = source.span(node)
    starts = _first_row(node) < around.row or (around.row, around.column) <= (span.row, span.column)
    return starts and (span.end_row, span.end_column) <= (around.end_row, around.end_column)


def _children(source: Source, node: ast.AST, span: Span) -> Iterator[ast.AST]:
    """The nodes below that have a place, of a long list the one that may be around the span."""
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, ast.AST):
            found: Iterable[object] = (value,)
        elif isinstance(value, list):
            if name in WITH_HOLES:
                value = [child for child in value if child is not None]
            found = _near(source, value, span) if len(value) > _MANY else value
        else:
            continue
        for child in found:
            if isinstance(child, ast.AST):
                if hasattr(child, "lineno"):
                    yield child
                else:
                    yield from _children(source, child, span)


def _near(source: Source, nodes: list[ast.AST], span: Span) -> Iterator[ast.AST]:
    """Of a list, which is in the order of the text, the last that does not begin behind the span."""
    at = bisect_right(nodes, (span.row, span.column), key=lambda node: _start(source, node))
    yield from nodes[max(at - 1, 0) : at]


def _start(source: Source, node: ast.AST) -> tuple[int, int]:
    """Where a node begins; of a definition, that is its first decorator."""
    while not hasattr(node, "lineno"):
        node = next(ast.iter_child_nodes(node))
    around = source.span(node)
    first = _first_row(node)
    return (first, 1) if first < around.row else (around.row, around.column)


def _first_row(node: ast.AST) -> int:
    """The row where a node begins; of a definition, that of its first decorator."""
    decorators: list[ast.AST] = getattr(node, "decorator_list", None) or []
    return int(min(getattr(item, "lineno", 1) for item in (node, *decorators)))
