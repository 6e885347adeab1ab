"""The syntax tree of a file and the text behind each node, or the one reason why there is none."""

from __future__ import annotations

import ast
import re
import sys
import warnings
from bisect import bisect_left
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from devlint.finding import Span
from devlint.source.newer import since
from devlint.source.stack import with_deep_stack
from devlint.source.text import ParseFailure, decode, extract, split_lines

if TYPE_CHECKING:
    import libcst

_BEYOND_ASCII = r"[^\x00-\x7f]"
_ELIDED = r"^\s*\.{4,}\s*$|\bdef \w+\(\.\.\.\)|[\w)\]]\s+\.\.\.\s*$|\{%.*%\}|\{\{.*\}\}"
"""A line of a template, one of dots that stand for code, or one that has them for parameters or for more terms."""
_NO_VALUE = r"^[^\"'#]*=\s*(?:[^\"'#]*[-+*/]\s*)?#|^[^\"'#]*=\s*\.\.\s*(?:#|$)|^\s*<+[^<>=]{3,}>+\s*$"
"""An assignment of what is yet to be written, or what stands for that: `x = 100 * # yours`, `= ..`, `<your code>`."""

DANGEROUS = 50_000
"""So many characters can be one expression, of 25,000 terms, on which Python 3.10 overruns its stack and dies."""


class Source:
    """One file that parses: its text, its lines and its tree.

    ``text`` is the decoded file with its own line ends; ``lines`` are split where Python's parser splits, only there.
    """

    def __init__(self, filename: str, text: str, tree: ast.Module) -> None:
        self.filename = filename
        self.text = text
        self.tree = tree
        self._wide: dict[int, tuple[list[int], list[int]]] = {}

    @classmethod
    def parse(
        cls,
        data: bytes | str,
        filename: str = "<string>",
        parsed: Callable[[str], ast.Module | None] | None = None,
    ) -> Source | ParseFailure:
        """Decode and parse a file; what cannot be parsed comes back as a value, never as an exception.

        ``parsed`` knows the tree of a text that was parsed before.
        """
        text = decode(data)
        if isinstance(text, ParseFailure):
            return text
        nul = text.find("\0")
        if nul >= 0:
            before = split_lines(text[:nul])
            return ParseFailure("the file contains a NUL byte", len(before), len(before[-1]) + 1)
        tree = (parsed(text) if parsed is not None else None) or tree_of(text, filename, since)
        return tree if isinstance(tree, ParseFailure) else cls(filename, text, tree)

    @cached_property
    def lines(self) -> list[str]:
        """The lines without their ends; row ``n`` of the tree is ``lines[n - 1]``."""
        return split_lines(self.text)

    def span(self, node: ast.AST) -> Span:
        """Where a node stands, in characters; ``ast`` counts UTF-8 bytes."""
        row, end_row = int(node.lineno), int(node.end_lineno or node.lineno)  # type: ignore[attr-defined]  # only nodes with a position are asked for
        start, end = int(node.col_offset), int(node.end_col_offset or 0)  # type: ignore[attr-defined]  # only nodes with a position are asked for
        return Span(row, self._characters(row, start) + 1, end_row, self._characters(end_row, end) + 1)

    def segment(self, node: ast.AST) -> str:
        """The source text of a node, its lines joined by a plain newline."""
        return self.slice(self.span(node))

    def slice(self, span: Span) -> str:
        """The source text of a span, its lines joined by a plain newline."""
        return extract(self.lines, span)

    def cst(self, node: ast.AST) -> libcst.BaseExpression | None:
        """The LibCST node of an expression, parsed when asked for; None where LibCST cannot read it."""
        import libcst

        text = self.segment(node)
        if not text.strip():
            return None
        try:
            return libcst.parse_expression(text)
        except Exception:  # LibCST's native parser raises more than its own error type
            pass
        try:
            # Inside brackets an expression may run over lines that do not stand alone; the brackets come off again.
            wrapped = libcst.parse_expression(f"({text})")
        except Exception:
            return None
        lpar, rpar = getattr(wrapped, "lpar", ()), getattr(wrapped, "rpar", ())
        return wrapped.with_changes(lpar=lpar[1:], rpar=rpar[:-1]) if lpar and rpar else wrapped

    def _characters(self, row: int, offset: int) -> int:
        """Turn an offset in UTF-8 bytes into one in characters."""
        # Before 3.12, Python misplaces some nodes inside f-strings, even beyond the end of the file.
        line = self.lines[row - 1] if 0 < row <= len(self.lines) else ""
        if line.isascii():
            return offset
        wide = self._wide.get(row)
        if wide is None:
            wide = self._wide[row] = _wide_characters(line)
        # Each character beyond ASCII before the offset takes some bytes more than the one column that it counts.
        starts, before = wide
        at = bisect_left(starts, offset)
        return min(max(offset - before[at], starts[at - 1] - before[at - 1] if at else 0), len(line))


def _wide_characters(line: str) -> tuple[list[int], list[int]]:
    """Where a line's characters beyond ASCII begin, in bytes, and how many bytes too many the first ``n`` take."""
    starts, before = [], [0]
    for match in re.finditer(_BEYOND_ASCII, line):
        starts.append(match.start() + before[-1])
        before.append(before[-1] + len(match[0].encode("utf-8", "surrogatepass")) - 1)
    return starts, before


def tree_of(
    text: str, filename: str = "<unknown>", hint: Callable[[str, int, int, str], str] | None = None
) -> ast.Module | ParseFailure:
    """The tree of a text without NUL bytes, or why Python has none; ``hint`` adds to what it says of a place."""
    try:
        with warnings.catch_warnings():
            # An invalid escape in somebody's string is not ours to report, nor may `-W error` make it fatal.
            warnings.simplefilter("ignore")
            if sys.version_info < (3, 11) and len(text) > DANGEROUS:
                return with_deep_stack(lambda: ast.parse(text, filename))
            return ast.parse(text, filename)
    except SyntaxError as error:
        row, column = max(error.lineno or 1, 1), max(error.offset or 1, 1)
        more = hint(text, row, column, error.msg) if hint is not None else ""
        line = "".join(split_lines(text)[row - 1 : row])
        unfinished = _keeps_the_place(text, row, error.msg) or re.search(_NO_VALUE, line) is not None
        elided = re.search(_ELIDED, line) is not None
        return ParseFailure(f"{error.msg}{more}", row, column, bool(more), unfinished, of_syntax=True, elided=elided)
    except (RecursionError, MemoryError):
        return ParseFailure("the code is nested too deeply for Python's parser", 1, 1)
    except (ValueError, UnicodeError) as error:
        # Lone surrogates, and integers longer than Python's limit.
        return ParseFailure(str(error), 1, 1)


def _keeps_the_place(text: str, row: int, message: str) -> bool:
    """Whether nothing but a comment stands where a block is expected, as in what others are to fill in."""
    header = re.fullmatch(r"expected an indented block after .* on line (\d+)", message)
    if header is None:
        return False
    lines = [line.strip() for line in split_lines(text)]
    # the row is that of the first line which is not far enough in, or of the last one of all
    ended = all(line[:1] in ("", "#") for line in lines[row - 1 :])
    between = lines[int(header[1]) : None if ended else row - 1]
    return next(filter(None, reversed(between)), "").startswith("#")
