"""How programs find what their users name: modules, and what is in them, that are looked up by a name."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import TypeAlias

from devlint.source.files import held

_KEY = rb"\[(?![\"'])(?![^\]\n]*\]\s*=[^=])"
"""What is read under a name that the text does not say."""
_GIVEN = rb"(?:args|opt|cfg|config|FLAGS|params|hparams)\b"
"""What holds that which a user gives."""
_BY_NAME = re.compile(
    rb"(?P<dict>[\w.]+)\.__dict__%b|(?P<own>\b(?:globals|locals)\(\))%b|\bimport_module\((?P<module>[^\n]*)"
    rb"|\b(?P<fire>Fire)\(|\bgetattr\((?P<of>[\w.]+), *(?:(?P<asked>%b)|[A-Za-z_])" % (_KEY, _KEY, _GIVEN)
)
"""How a program finds what its user names, and in what."""
_INSTANCE = re.compile(rb"self|cls|%b" % _GIVEN)
"""What is no module."""
_IMPORTED = (
    rb"^\s*(?:from\s+([\w.]+)\s+import\s+((?:[^\n#]*\W)??%b\b)"
    rb"|import\s+(?:([\w.]+)\s+as\s+|(?:[\w., ]+,\s*)?)%b\b)(?!\.)"
)
"""The statement that binds a name, and the module that it takes it from."""
_STAR = re.compile(rb"^\s*from\s+([\w.]+)\s+import\s+\*", re.MULTILINE)
_LITERAL = re.compile(rb"[fr]?[\"']([\w.]*)([\"']\s*[,)])?")
"""How the name of a module begins, and whether that is all of it."""
Modules: TypeAlias = dict[bytes, set[str]]
"""The files of each name of a module, or of a package that they are in."""


def modules_of(root: str, files: Iterable[tuple[str, str]]) -> Modules:
    """The files of a project by the names of their modules, and of the packages that they are in.

    Each comes as a path, and as the one that it is where links are followed.
    """
    modules: Modules = {}
    for path, here in files:
        for part in os.path.relpath(path, root).split(os.sep):
            modules.setdefault(os.path.splitext(part)[0].encode(), set()).add(here)
    return modules


def looked_in(data: bytes, here: str, modules: Modules) -> set[str] | None:
    """The files of a project in which one of them finds what its user names; ``None`` where that may be any."""
    found: set[str] = set()
    for match in _BY_NAME.finditer(data):
        name = match["dict"] or match["of"]
        if name:
            inside = _bound(data, name, modules)
        elif match["module"] is not None:
            inside = _loaded(data, match["module"], here, modules)
        else:
            every = set[str]().union(*modules.values()) if match["fire"] else set[str]()
            inside = {here, *(path for path in every if imports(data, path))}
        other = match["asked"] is None if match["of"] else match["dict"] and _INSTANCE.fullmatch(name)
        if inside is None and not other:
            return None
        found |= inside or set()
    return found


def _bound(data: bytes, name: bytes, modules: Modules) -> set[str] | None:
    """The files of what an import statement binds to a name, or to the first part of one; ``None`` if none does."""
    first, _, attribute = name.partition(b".")
    found: set[str] | None = None
    for match in re.finditer(_IMPORTED % (first, first), data, re.MULTILINE):
        found = found or set()
        source = match[1] or match[3] or first
        if source.partition(b".")[0] in {b"", *modules}:
            last = source.rpartition(b".")[2]
            taken = re.findall(rb"\w+", attribute or match[2] or last)
            inside = set[str]().union(*(modules.get(word, ()) for word in taken)) or modules.get(last)
            if not inside:
                return None
            found |= inside
    return found


def _loaded(data: bytes, argument: bytes, here: str, modules: Modules) -> set[str] | None:
    """The files among which a call of ``import_module`` finds its module; ``None`` where that may be any."""
    given = [argument]
    if variable := re.match(rb"(\w+)\s*[,)]", argument):
        given = re.findall(rb"^\s*%b\s*=\s*(.*)" % variable[1], data, re.MULTILINE)
        if re.search(rb"\b(?:def\s+\w+\([^)]*|for\s[^\n]*)\b%b\b" % variable[1], data):
            return None
    begun = [_LITERAL.match(text) for text in given]
    found: set[str] = set()
    for match in begun:
        package = b"" if match is None else match[1] if match[2] else match[1].rpartition(b".")[0]
        if match is not None and re.match(rb"\.(?!\.)", match[1]):
            beside = os.path.dirname(here) + os.sep
            found.update(path for paths in modules.values() for path in paths if path.startswith(beside))
        elif not package.strip(b"."):
            return None
        else:
            found |= modules.get(package.rpartition(b".")[2], set())
    return found if begun else None


def with_stars(paths: set[str], modules: Modules) -> set[str]:
    """Files, and those of which they take everything."""
    rest, found = list(paths), set(paths)
    while rest:
        stars = _STAR.findall(held(rest.pop()) or b"")
        more = set[str]().union(*(modules.get(source.rpartition(b".")[2], ()) for source in stars)) - found
        found |= more
        rest += more
    return found


def imports(data: bytes, path: str) -> bool:
    """Whether an import statement in the text of a file names another file, or its package."""
    stem, folder = os.path.splitext(os.path.basename(path))[0], os.path.basename(os.path.dirname(path))
    name = folder if stem == "__init__" else stem
    return bool(re.search(rb"^\s*(?:from|import)\b.*\b%b\b" % re.escape(name.encode()), data, re.MULTILINE))
