"""The sources as mypyc is to see them: still Python, which does the same."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from tools.compiling import guards, kept
from tools.compiling.expressions import Constants, Generators
from tools.compiling.records import UNCHANGED, Records

_ENUMERATIONS = ("Kind", "Role")
"""Those of :mod:`devlint.device`, whose members are asked for everywhere."""
_IMPORTS = """
from typing import Any, Final
from devlint import immutable as immutable_
"""


def rewrite(root: Path, paths: Iterable[Path]) -> None:
    """Rewrite modules below ``root`` in place."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in paths}
    records = Records(trees.values())
    classes = [node for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    owned = {node.name: kept.own_attributes(node) for node in classes if node.name in kept.EMPTIED}
    for path, tree in trees.items():
        path.write_text(rewritten(tree, records, owned, path.relative_to(root).as_posix()), encoding="utf-8")


def rewritten(tree: ast.Module, records: Records, owned: Mapping[str, Collection[str]], name: str) -> str:
    """The code of a module, whose path is ``name``; ``owned`` is what :func:`kept.empty` asks for."""
    if _imports(tree, "dataclasses", "replace"):
        raise ValueError(f"{name}: `replace` of dataclasses is not known here, that of devlint.immutable is")
    for node in [part for part in ast.walk(tree) if isinstance(part, ast.ClassDef)]:
        defaults = records.rewrite(node)
        if defaults:
            at = tree.body.index(node)
            tree.body[at:at] = defaults
        kept.keep(node)
        kept.empty(node, owned)
    Generators().visit(tree)
    constants = Constants(_enumerations(tree, name), _imports(tree, "devlint.immutable", "replace"))
    constants.visit(tree)
    if name in guards.GUARDED:
        guards.guard(tree, guards.GUARDED[name])
    _insert(tree, {UNCHANGED: f"immutable_.{UNCHANGED}", **constants.found})
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _enumerations(tree: ast.Module, name: str) -> frozenset[str]:
    """The expressions that mean those enumerations in a module."""
    own = [
        kind for kind in _ENUMERATIONS if name == "devlint/device/lattice.py" or _imports(tree, "devlint.device", kind)
    ]
    return frozenset([*own, *(f"device.{kind}" for kind in _ENUMERATIONS if _imports(tree, "devlint", "device"))])


def _imports(tree: ast.Module, module: str, name: str) -> bool:
    found = (item for item in tree.body if isinstance(item, ast.ImportFrom) and item.module == module)
    return any(alias.name == name and alias.asname is None for item in found for alias in item.names)


def _insert(tree: ast.Module, constants: dict[str, str]) -> None:
    """Put constants after the imports, and after the enumerations where those are defined."""
    last = max((index for index, item in enumerate(tree.body) if _comes_first(item)), default=0)
    lines = [f"{name}: Final = {value}" for name, value in constants.items()]
    tree.body[last + 1 : last + 1] = ast.parse("\n".join(lines)).body
    future = [item for item in tree.body if isinstance(item, ast.ImportFrom) and item.module == "__future__"]
    at = tree.body.index(future[0]) + 1 if future else bool(ast.get_docstring(tree))
    tree.body[at:at] = ast.parse(_IMPORTS).body


def _comes_first(item: ast.stmt) -> bool:
    defines = isinstance(item, ast.ClassDef) and item.name in _ENUMERATIONS
    return defines or isinstance(item, (ast.Import, ast.ImportFrom))
