"""The files of a project: where it begins, and what may run, name or configure something in it."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator

from devlint.finding import Finding
from devlint.source.files import held

_BEGINS = frozenset({".git", ".hg", ".svn"})
_SIGNS = ("readme", "license", "licence")
"""How the names of files begin that stand where a project begins, in lower case."""
HIGHEST = 8
MOST = 4_000
"""So many files are searched; who knows what the others say."""
_INSTALLED = ("node_modules", "venv", "env", "build", "dist")


def begins(names: list[str]) -> bool:
    """Whether a project begins in a folder that has files of these names."""
    signs = any(name.lower().startswith(_SIGNS) for name in names) and "__init__.py" not in names
    return signs or is_repository(names)


def is_repository(names: list[str]) -> bool:
    """Whether a folder that has entries of these names is where a repository begins."""
    return not _BEGINS.isdisjoint(names)


def root(folder: str) -> str:
    """Where the project of an absolute folder begins; empty if nobody knows."""
    for _ in range(HIGHEST):
        try:
            names = os.listdir(folder)
        except OSError:
            return ""
        if begins(names):
            return folder
        folder = os.path.dirname(folder)
    return ""


def rooted(findings: Iterable[Finding]) -> Iterator[tuple[Finding, str]]:
    """Findings, each with where its project begins; each folder is looked at once."""
    known: dict[str, str] = {}
    for finding in findings:
        folder = os.path.dirname(os.path.abspath(finding.filename))
        if folder not in known:
            known[folder] = root(folder)
        yield finding, known[folder]


def files(root: str, ends: tuple[str, ...]) -> Iterator[str]:
    """The files of a project whose names end so, but for hidden ones and what is installed in it."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _INSTALLED)
        yield from (os.path.join(folder, name) for name in sorted(names) if name.endswith(ends))


def parsed(path: str) -> ast.Module | None:
    """The syntax tree of a file; ``None`` if it cannot be read."""
    try:
        return ast.parse(held(path) or b"")
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
