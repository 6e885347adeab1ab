"""Trials: what a file of networks does when it is run by itself, to see whether they work."""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from devlint.flow.syntax import names
from devlint.source.syntax import walk

_TRIAL = re.compile(r"test|try|demo|debug|sanity|smoke|example|bench")
"""What functions are called that such a trial calls; any other may be the program."""
_PARSES = re.compile(r"\b(?:ArgumentParser|parse_args|parse_known_args|Fire|CLI|typer|click|hydra)\b")
"""Whose users tell it what to do, which is a program."""


@lru_cache(maxsize=8)
def tried_out(tree: ast.Module) -> frozenset[int]:
    """The rows of a trial under ``if __name__ == "__main__":``, and of the functions that it calls; none of a program.

    Who writes networks and trains them in one file does so in a function of another name.
    """
    blocks = [part for part in tree.body if isinstance(part, ast.If) and "__name__" in ast.unparse(part.test)]
    if not blocks or not any(isinstance(part, ast.FunctionDef) and part.name == "forward" for part in walk(tree)):
        return frozenset()
    called = {names.called(part) for block in blocks for part in walk(block) if isinstance(part, ast.Call)}
    defined = {part.name: part for part in tree.body if isinstance(part, ast.FunctionDef)}
    program = any(name in defined and not _TRIAL.search(name) for name in called)
    if program or any(_PARSES.search(ast.unparse(block)) for block in blocks):
        return frozenset()
    parts = [*blocks, *(part for name, part in defined.items() if name in called)]
    return frozenset(row for part in parts for row in range(part.lineno, (part.end_lineno or 0) + 1))
