"""Dead code: definitions at the top level of a file that no other word of their project names."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from devlint.finding import Finding, Severity
from devlint.source.file_kinds import is_of_tests
from devlint.source.files import held

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_BEGINS = frozenset({".git", ".hg", ".svn"})
_SIGNS = ("readme", "license", "licence")
"""How the names of files begin that stand where a project begins, in lower case."""
_HIGHEST = 8
_NAMING = (".py", ".ipynb", ".pyi", ".yaml", ".yml", ".json", ".toml", ".cfg", ".ini", ".txt", ".sh", ".md", ".rst")
"""The ends of the names of files by which something may be called."""
_PACKAGES = ("setup.py", "setup.cfg", "pyproject.toml")
_PUBLISHED = re.compile(rb"^\[(?:project|tool\.poetry|tool\.flit\.metadata|metadata)\]|\bpackages\s*=", re.MULTILINE)
"""What says that others install the project, and use what it does not use itself."""
_BY_NAME = re.compile(
    rb"__dict__\[|(?:globals|locals)\(\)\[|import_module\(|\bFire\("
    rb"|getattr\(\w+, *(?:args|opt|cfg|config|FLAGS|params|hparams)\b"
)
"""How a program finds what its user names."""
_INSTALLED = ("node_modules", "venv", "env", "build", "dist")
_MOST, _LARGEST = 4_000, 1_000_000
"""So many files of so many bytes are searched; who knows what the others say."""


def dead(findings: Sequence[Finding]) -> list[Finding]:
    """Those of a run's findings, in order, that are in code which nothing uses: hints and warnings in files.

    A definition counts as used if it has a decorator, which may register it, if its project is one that others install
    or that looks things up by names that users give, if it is of a test, and if anything but itself names it.
    """
    by_root: dict[str, list[Finding]] = {}
    roots: dict[str, str] = {}
    for finding in findings:
        if finding.severity < Severity.ERROR and _top(finding) and not is_of_tests(finding.filename):
            folder = os.path.dirname(os.path.abspath(finding.filename))
            if folder not in roots:
                roots[folder] = _root(folder)
            by_root.setdefault(roots[folder], []).append(finding)
    by_root.pop("", None)
    found = {id(one) for root, some in by_root.items() for one in _dead_in(root, some)}
    return [finding for finding in findings if id(finding) in found]


def _top(finding: Finding) -> str:
    """The name of the definition at the top level of its file that a finding is in; empty if it is in none."""
    return finding.context.scope.partition(".")[0] if finding.context is not None and not finding.span.cell else ""


def _root(folder: str) -> str:
    """Where the project of an absolute folder begins; empty if nobody knows, or if others install it."""
    for _ in range(_HIGHEST):
        try:
            names = os.listdir(folder)
        except OSError:
            return ""
        if any(_PUBLISHED.search(held(os.path.join(folder, name)) or b"") for name in _PACKAGES if name in names):
            return ""
        signs = any(name.lower().startswith(_SIGNS) for name in names) and "__init__.py" not in names
        if signs or not _BEGINS.isdisjoint(names):
            return folder
        folder = os.path.dirname(folder)
    return ""


def _dead_in(root: str, findings: Sequence[Finding]) -> Iterator[Finding]:
    """Those of a project's findings that are in definitions of which no other word of it speaks."""
    named: dict[str, set[str]] = {}
    for finding in findings:
        named.setdefault(os.path.realpath(finding.filename), set()).add(_top(finding))
    lonely = {path: _lonely(path, names) for path, names in named.items()}
    names = frozenset[str]().union(*lonely.values())
    used = _used(root, names, lonely) if names else names
    for finding in findings:
        name = _top(finding)
        if name not in used and name in lonely[os.path.realpath(finding.filename)]:
            yield finding


def _lonely(path: str, names: Iterable[str]) -> frozenset[str]:
    """Those of a file's definitions that nothing else in it names."""
    data = held(path) or b""
    try:
        body = ast.parse(data).body
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return frozenset()
    lines = data.splitlines(keepends=True)
    alone: set[str] = set()
    for node in body:
        if isinstance(node, _DEFINITIONS) and node.name in names and not node.decorator_list:
            rest = b"".join([*lines[: node.lineno - 1], *lines[node.end_lineno or 0 :]])
            if not _word(node.name).search(rest):
                alone.add(node.name)
    return frozenset(alone)


def _used(root: str, names: frozenset[str], lonely: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Which of the names the files of a project mention, but for those that define them; all if that cannot be said."""
    found: set[str] = set()
    words = re.compile(rb"\b(?:%b)\b" % b"|".join(sorted(name.encode() for name in names)))
    for count, path in enumerate(_files(root), 1):
        data = held(path) or b""
        if count > _MOST or len(data) > _LARGEST or _BY_NAME.search(data):
            return names
        found.update(
            {match.decode() for match in words.findall(data)} - lonely.get(os.path.realpath(path), frozenset())
        )
    return frozenset(found)


def _word(name: str) -> re.Pattern[bytes]:
    return re.compile(rb"\b%b\b" % name.encode())


def _files(root: str) -> Iterator[str]:
    """The files of a project by which something may be called, but for hidden ones and what is installed in it."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _INSTALLED)
        yield from (os.path.join(folder, name) for name in sorted(names) if name.endswith(_NAMING))
