"""What a file is called where it is imported, and from where."""

from __future__ import annotations

import ast
import os
import sys
from dataclasses import dataclass


@dataclass(frozen=True)
class Module:
    """A module's name, and the folder that has to be on Python's path for it."""

    name: str
    root: str

    @property
    def path(self) -> list[str]:
        """Where the module and those beside it are found, and then whatever else is installed."""
        here = os.getcwd()
        own = [self.root, here, os.path.join(here, "src")]
        return list(dict.fromkeys([*own, *(entry for entry in sys.path if entry)]))

    @property
    def hint(self) -> str:
        """What has to be set for a script to find it, empty where it is installed or in the current directory."""
        here = os.path.realpath(os.getcwd())
        root = os.path.realpath(self.root)
        if root == here or root in {os.path.realpath(entry) for entry in sys.path if entry}:
            return ""
        inside = os.path.join(root, "").startswith(os.path.join(here, ""))
        return f"PYTHONPATH={os.path.relpath(root) if inside else root}"


def module_of(file: str, tree: ast.Module) -> Module:
    """The module that a file is: of the packages around it, or by itself."""
    folder, name = os.path.split(os.path.realpath(file))
    parts = [] if name == "__init__.py" else [os.path.splitext(name)[0]]
    relative = max((node.level for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)), default=0)
    while os.path.isfile(os.path.join(folder, "__init__.py")) or relative > 0:
        folder, package = os.path.split(folder)
        parts.insert(0, package)
        relative -= 1
        if not package:
            break
    return Module(".".join(parts), folder)
