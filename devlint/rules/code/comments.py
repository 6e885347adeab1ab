"""Comments within code that a fix replaces: they say what no analysis knows, and nobody should lose them unasked."""

from __future__ import annotations

import io
import tokenize
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from devlint.finding import Edit

if TYPE_CHECKING:
    from devlint.source.tree import Source


def loses_comments(source: Source, edits: Sequence[Edit]) -> bool:
    """Whether edits take comments out of an expression that they do not put in again.

    The one at the end of a statement speaks of the statement, and goes with it.
    """
    old = [source.slice(edit.span) for edit in edits]
    if not any("#" in text for text in old):
        return False
    return bool(_comments(old) - _comments([f"{edit.content}\n)" for edit in edits]))


def _comments(texts: Iterable[str]) -> Counter[str]:
    """The comments in pieces of code, but for those after which there is no more code."""
    found: Counter[str] = Counter()
    for text in texts:
        waiting: list[str] = []
        try:
            # in brackets, any expression goes on over the ends of its lines
            for token in tokenize.generate_tokens(io.StringIO(f"({text}").readline):
                if token.type == tokenize.COMMENT:
                    waiting.append(token.string)
                elif token.string.strip():
                    found.update(waiting)
                    waiting = []
        except (tokenize.TokenError, SyntaxError):
            pass  # the bracket is not closed
    return found
