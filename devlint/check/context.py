"""What surrounds a finding: the definition, the statement, and its code as it reads without the layout."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from devlint.check.source import Source
from devlint.finding import Context, Finding, Span

_ATOMS = (ast.Constant, ast.FormattedValue, ast.JoinedStr, ast.Name, ast.keyword)
"""What says too little by itself: a `"cuda"` is told from another one by what is around it."""
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_MANY = 16
_LONGEST = 120
_COMMENT_OR_STRING = re.compile(
    r'''#[^\n]*|"""(?:\\.|[^\\])*?"""|\'\'\'(?:\\.|[^\\])*?\'\'\'|"(?:\\.|[^\\"\n])*"|'(?:\\.|[^\\'\n])*\'''', re.DOTALL
)
_SPACE = re.compile(r"(?:\s|\\\n)+")
_LAST_COMMA = re.compile(r",\s*(?=[)\]}])")
_NEEDLESS = re.compile(r"(?<!\w) | (?!\w)")


def in_context(source: Source, findings: Sequence[Finding]) -> list[Finding]:
    """The findings of one file, each with what surrounds it."""
    return [replace(finding, context=_context(source, finding)) for finding in findings]


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
    return _NEEDLESS.sub("", _LAST_COMMA.sub("", _SPACE.sub(" ", code))).replace(",", ", ")


def _quoted(string: str) -> str:
    simple = string[0] == "'" and not string.startswith("'''") and '"' not in string and "\\" not in string
    return f'"{string[1:-1]}"' if simple else string


def _context(source: Source, finding: Finding) -> Context:
    chain = list(_around(source, finding.span))
    scope = ".".join(node.name for node in chain if isinstance(node, _DEFINITIONS))
    span = finding.span
    if chain and isinstance(chain[-1], _ATOMS):
        span = _span(source, next((node for node in reversed(chain) if not isinstance(node, _ATOMS)), chain[-1]))
    text = plain(source.slice(span)) or " ".join(source.slice(span).split())
    return Context(scope, _shortened(text), _rows(source, chain, finding.span))


def _shortened(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    from hashlib import sha256

    return f"{text[: _LONGEST // 2]}... {sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def _rows(source: Source, chain: list[ast.AST], span: Span) -> tuple[int, int]:
    """First and last row of the innermost statement, of a compound one of its header, and of the finding itself."""
    for node in reversed(chain):
        if isinstance(node, ast.stmt | ast.excepthandler):
            whole = _span(source, node)
            return min(whole.row, span.row), max(whole.end_row, span.end_row)
    return span.row, span.end_row


def _span(source: Source, node: ast.AST) -> Span:
    """Where a node stands; of a compound statement, its header with the decorators."""
    span = source.span(node)
    body: object = getattr(node, "body", None)
    if not isinstance(body, list) or not body:
        return span
    last = max(span.row, min(_first_row(body[0]) - 1, span.end_row))
    return Span(_first_row(node), 1, last, len(source.lines[last - 1]) + 1)


def _around(source: Source, span: Span) -> Iterator[ast.AST]:
    """The nodes that contain a span, from the outside to the inside."""
    node: ast.AST | None = source.tree
    while node is not None:
        node = next((child for child in _children(node, span.row) if _contains(source, child, span)), None)
        if node is not None:
            yield node


def _contains(source: Source, node: ast.AST, span: Span) -> bool:
    if not _first_row(node) <= span.row <= span.end_row <= (getattr(node, "end_lineno", None) or 0):
        return False
    around = source.span(node)
    starts = _first_row(node) < around.row or (around.row, around.column) <= (span.row, span.column)
    return starts and (span.end_row, span.end_column) <= (around.end_row, around.end_column)


def _children(node: ast.AST, row: int) -> Iterator[ast.AST]:
    """The nodes below that have a place, of a long list only those near the row."""
    for name, value in ast.iter_fields(node):
        if isinstance(value, ast.AST):
            found: Iterable[object] = (value,)
        elif isinstance(value, list):
            found = _near(value, row) if len(value) > _MANY and name in ("body", "elts") else value
        else:
            continue
        for child in found:
            if isinstance(child, ast.AST):
                if hasattr(child, "lineno"):
                    yield child
                else:
                    yield from _children(child, row)


def _near(nodes: list[ast.AST], row: int) -> Iterator[ast.AST]:
    for number in range(bisect_left(nodes, row, key=_last_row), len(nodes)):
        if _first_row(nodes[number]) > row:
            return
        yield nodes[number]


def _last_row(node: ast.AST) -> int:
    return int(getattr(node, "end_lineno", None) or 0)


def _first_row(node: ast.AST) -> int:
    """The row where a node begins; of a definition, that of its first decorator."""
    decorators: list[ast.AST] = getattr(node, "decorator_list", [])
    return int(min(getattr(item, "lineno", 1) for item in (node, *decorators)))
