"""Scripts that change the default device: the files that they import make their tensors there, and do not say so."""

from __future__ import annotations

import os
import re
from typing import TypeAlias

from devlint.source.files import content

Importers: TypeAlias = tuple[tuple[str, frozenset[str]], ...]
"""Folders, each with the modules and packages in it that a script beside them imports which changes the default."""
Known: TypeAlias = dict[str, frozenset[str]]
"""What was found in folders."""
CHANGES = re.compile(rb"\bset_default_(?:device|tensor_type)\((?![^)\n]*(?:\bcpu\b|\btorch\.(?!cuda)\w*Tensor\b))")
_IMPORTS = re.compile(rb"^[ \t]*(?:from[ \t]+\.?(\w+)|import[ \t]+([\w., \t]+))", re.MULTILINE)
_SIGNS = ("readme", "license", "licence")
"""How the names of files begin that stand where a project begins, in lower case."""
_ROOTS = frozenset({".git", ".hg", ".svn", "pyproject.toml", "setup.py", "setup.cfg", "requirements.txt"})
_HIGHEST = 4
"""So many folders are looked at for one."""


def importers(directory: str, known: Known) -> Importers:
    """The scripts in an absolute directory, and in those above it up to where its project begins."""
    found: list[tuple[str, frozenset[str]]] = []
    folder = directory
    for _ in range(_HIGHEST):
        try:
            names = os.listdir(folder)
        except OSError:
            break
        if folder not in known:
            known[folder] = _imported(folder, names)
        if known[folder]:
            found.append((folder, known[folder]))
        if any(name in _ROOTS or name.lower().startswith(_SIGNS) for name in names):
            return tuple(found)
        parent = os.path.dirname(folder)
        if parent == folder:
            break
        folder = parent
    # nobody knows where it begins: what lies around it may be somebody else's
    return tuple(one for one in found if one[0] == directory)


def is_imported(filename: str, scripts: Importers) -> bool:
    """Whether one of the scripts imports the file of that absolute name, or the package that it is in."""
    for folder, names in scripts:
        relative = os.path.relpath(filename, folder)
        if relative.partition(os.sep)[0].removesuffix(".py") in names:
            return True
    return False


def _imported(folder: str, names: list[str]) -> frozenset[str]:
    """What the scripts of a folder import that change the default; in a package there are none."""
    found: set[str] = set()
    for name in names if "__init__.py" not in names else ():
        if name.endswith(".py"):
            try:
                data = content(os.path.join(folder, name))
            except (OSError, ValueError):
                continue
            if CHANGES.search(data):
                found.update(word for match in _IMPORTS.finditer(data) for word in _words(match))
    return frozenset(found)


def _words(match: re.Match[bytes]) -> list[str]:
    """The first names of what an import statement names."""
    listed = match[1] or match[2]
    return [part.split(b".")[0].split()[0].decode() for part in listed.split(b",") if part.strip()]
