"""Dead code: functions, classes and methods that no other word of their project names."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TypeAlias

from devlint.check.filters import project_files
from devlint.finding import Finding, Severity
from devlint.flow.catalog.concepts import INERT_DECORATORS
from devlint.rules.registry import registry
from devlint.source.file_kinds import is_of_tests
from devlint.source.files import held

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_NAMING = (".py", ".ipynb", ".pyi", ".yaml", ".yml", ".json", ".toml", ".cfg", ".ini", ".txt", ".sh", ".md", ".rst")
"""The ends of the names of files by which something may be called."""
_PACKAGES = ("setup.py", "setup.cfg", "pyproject.toml")
_PUBLISHED = re.compile(rb"^\[(?:project|tool\.poetry|tool\.flit\.metadata|metadata)\]|\bpackages\s*=", re.MULTILINE)
"""What says that others install the project, and use what it does not use itself."""
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
_EXPORTED = re.compile(rb"^__all__\s*\+?=\s*[\[(][^\])]*[\])]", re.MULTILINE)
"""What a module offers is used where somebody takes it."""
_PLAIN = frozenset({"object", "Module"})
"""Classes, by their last names, that call no method of those derived from them but what is in ``_HOOKS``."""
_HOOKS = re.compile(r"__\w+__|forward|extra_repr|train|_\w+|\w*(?:state_dict|parameters|modules|buffers|hook)\w*")
_Key: TypeAlias = tuple[str, str]
"""A file, and the name of something that it defines."""
_Modules: TypeAlias = dict[bytes, set[str]]
"""The files of each name of a module, or of a package that they are in."""
_COMMENT = re.compile(rb"^[ \t]*#[^\n]*", re.MULTILINE)
"""What is commented out names nothing; a shebang, or a line of a shell script, neither."""
_LARGEST = 1_000_000
"""Files of so many bytes are searched; who knows what the others say."""


def dead(findings: Sequence[Finding]) -> list[Finding]:
    """Those of a run's findings, in order, that are in files, in code which nothing uses; errors, where one did once.

    A definition counts as used if it has a decorator that may register it, if it is in a module in which things are
    looked up by names that users give, if it is of a test, and if anything names it but itself and what is as dead. In
    a project that others install it is used if a package offers it, and in any case by who has to hear of what happens
    today already. A method is judged by itself only in a class that calls it for nobody else's sake.
    """
    by_root: dict[tuple[str, bool], list[Finding]] = {}
    root = cache(_root)
    for finding in findings:
        if _scope(finding) and not is_of_tests(finding.filename):
            folder, installed = root(os.path.dirname(os.path.abspath(finding.filename)))
            if folder and not (installed and _concerns_users(finding)):
                by_root.setdefault((folder, installed), []).append(finding)
    found = {id(one) for where, some in by_root.items() for one in _dead_in(*where, some)}
    return [finding for finding in findings if id(finding) in found]


@dataclass(frozen=True, slots=True)
class _Definition:
    """A definition: its name, and the first and the last row of it. ``own`` is whether nobody else may know of it."""

    name: str
    rows: tuple[int, int]
    own: bool


@dataclass(frozen=True, slots=True)
class _Module:
    """A file: what it defines at its top level, and in its classes, by qualified name, and where its words stand."""

    definitions: dict[str, _Definition] = field(default_factory=dict)
    lines: list[bytes] = field(default_factory=list)
    comments: list[bytes] = field(default_factory=list)

    def without(self, qualified: str) -> frozenset[str] | None:
        """The names without which a definition is dead: its own, and of those that name it; ``None`` if others do."""
        needed: set[str] = set()
        rest = [qualified]
        while rest:
            definition = self.definitions.get(rest.pop())
            if definition is None or not definition.own:
                return None
            needed.add(definition.name)
            word = re.compile(rb"\b%b\b" % definition.name.encode())
            first, last = definition.rows
            for row, line in enumerate(self.lines, 1):
                if not first <= row <= last and word.search(line):
                    around = self._around(row)
                    if around is None:
                        return None
                    if around.name not in needed:
                        rest.append(around.name)
        return frozenset(needed)

    def gave_up(self, qualified: str) -> bool:
        """Whether a call of a definition is commented out: what is new, nothing need call yet."""
        call = re.compile(rb"^[ \t]*#[^\n]*\b%b\(" % self.definitions[qualified].name.encode())
        return any(map(call.match, self.comments))

    def _around(self, row: int) -> _Definition | None:
        """The definition at the top level that a row is in."""
        found = (one for name, one in self.definitions.items() if "." not in name)
        return next((one for one in found if one.rows[0] <= row <= one.rows[1]), None)


def _concerns_users(finding: Finding) -> bool:
    """Whether a finding is worth telling of whatever others may call: a hint, or a name that is to go, is not."""
    rule = registry().get(finding.code)
    return finding.severity > Severity.INFO and not (rule is not None and rule.deprecates)


def _scope(finding: Finding) -> str:
    """The definition that a finding is in: at the top level of its file, or a method; empty if it is in none."""
    return "" if finding.context is None or finding.span.cell else finding.context.scope


def _root(folder: str) -> tuple[str, bool]:
    """Where the project of an absolute folder begins, empty if nobody knows, and whether others install it."""
    installed = False
    for _ in range(project_files.HIGHEST):
        try:
            names = os.listdir(folder)
        except OSError:
            break
        packages = (held(os.path.join(folder, name)) for name in _PACKAGES if name in names)
        installed = installed or any(_PUBLISHED.search(text or b"") for text in packages)
        if project_files.begins(names):
            return folder, installed
        folder = os.path.dirname(folder)
    return "", installed


def _dead_in(root: str, installed: bool, findings: Sequence[Finding]) -> Iterator[Finding]:
    """Those of a project's findings that are in definitions of which no other word of it speaks."""
    modules: dict[str, _Module] = {}
    needed: dict[_Key, frozenset[str]] = {}
    around = [_around(finding) for finding in findings]
    for path, qualified in frozenset[_Key]().union(*around):
        if path not in modules:
            modules[path] = _module(path, installed)
        if (names := modules[path].without(qualified)) is not None:
            needed[path, qualified] = names
    asked = {(path, name) for (path, _), names in needed.items() for name in names}
    used = _used(root, asked, installed) if needed else set()
    gone = {key for key, names in needed.items() if not any((key[0], name) in used for name in names)}
    for finding, keys in zip(findings, around, strict=True):
        if any(finding.severity < Severity.ERROR or modules[key[0]].gave_up(key[1]) for key in gone & keys):
            yield finding


def _around(finding: Finding) -> frozenset[_Key]:
    """The definition at the top level of its file that a finding is in, and the method."""
    path, scope = os.path.realpath(finding.filename), _scope(finding).split(".")
    return frozenset({(path, scope[0]), (path, ".".join(scope[:2]))})


def _module(path: str, installed: bool) -> _Module:
    """What a file defines; nothing if it cannot be read. Of what others install, ``__all__`` is what they may use."""
    data = held(path) or b""
    try:
        body = ast.parse(data).body
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return _Module()
    found: dict[str, _Definition] = {}
    plain: set[str] = set(_PLAIN)
    for node in body:
        if not isinstance(node, _DEFINITIONS):
            continue
        # what is defined twice is used as whoever comes last
        found[node.name] = _defined(node, not _registered(node) and node.name not in found)
        if isinstance(node, ast.ClassDef) and all(ast.unparse(base).rpartition(".")[2] in plain for base in node.bases):
            plain.add(node.name)
            methods = (each for each in node.body if isinstance(each, _DEFINITIONS))
            for each in methods:
                own = not (_registered(each) or _registered(node) or node.keywords or _HOOKS.fullmatch(each.name))
                found[f"{node.name}.{each.name}"] = _defined(each, own)
    shown = _COMMENT.sub(b"", data)
    if not installed:
        shown = _EXPORTED.sub(lambda match: b"\n" * match[0].count(b"\n"), shown)
    return _Module(found, shown.splitlines(), _COMMENT.findall(data))


def _registered(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    """Whether a decorator may make a definition known to somebody."""
    called = (one.func if isinstance(one, ast.Call) else one for one in node.decorator_list)
    return not all(any(f".{name}".endswith(f".{ast.unparse(one)}") for name in INERT_DECORATORS) for one in called)


def _defined(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, own: bool) -> _Definition:
    return _Definition(node.name, (node.lineno, node.end_lineno or node.lineno), own)


def _used(root: str, names: set[_Key], installed: bool) -> set[_Key]:
    """Which of the names, each with the file that defines it, other files of a project mention; all if who knows.

    Where others install the project, a package that takes all of a module offers it.
    """
    found: set[_Key] = set()
    definers: dict[bytes, set[str]] = {}
    for path, name in names:
        definers.setdefault(name.encode(), set()).add(path)
    words = re.compile(rb"\b(?:%b)\b" % b"|".join(sorted(definers)))
    paths = [*project_files.files(root, _NAMING)]
    if len(paths) > project_files.MOST:
        return names
    # each with the file that it is where links are followed
    files = {path: os.path.realpath(path) for path in paths}
    modules: _Modules = {}
    for path, here in files.items():
        for part in os.path.relpath(path, root).split(os.sep):
            modules.setdefault(os.path.splitext(part)[0].encode(), set()).add(here)
    looked_in: set[str] = set()
    for path, here in files.items():
        data = held(path) or b""
        inside = _looked_in(data, here, modules)
        if len(data) > _LARGEST or inside is None:
            return names
        looked_in |= inside
        if installed and os.path.basename(path) == "__init__.py":
            looked_in.add(here)
        for word in set(words.findall(_COMMENT.sub(b"", data) if path.endswith(".py") else data)):
            others = definers[word] - {here}
            if others and re.search(rb"^(?:async )?(?:def|class) %b\b" % word, data, re.MULTILINE):
                # it means its own, unless it takes another one as well
                others = {other for other in others if _imports(data, other)}
            found.update((other, word.decode()) for other in others)
    looked_in = _with_stars(looked_in, modules)
    return found | {(path, name) for path, name in names if path in looked_in}


def _looked_in(data: bytes, here: str, modules: _Modules) -> set[str] | None:
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
            inside = {here, *(path for path in every if _imports(data, path))}
        other = match["asked"] is None if match["of"] else match["dict"] and _INSTANCE.fullmatch(name)
        if inside is None and not other:
            return None
        found |= inside or set()
    return found


def _bound(data: bytes, name: bytes, modules: _Modules) -> set[str] | None:
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


def _loaded(data: bytes, argument: bytes, here: str, modules: _Modules) -> set[str] | None:
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


def _with_stars(paths: set[str], modules: _Modules) -> set[str]:
    """Files, and those of which they take everything."""
    rest, found = list(paths), set(paths)
    while rest:
        stars = _STAR.findall(held(rest.pop()) or b"")
        more = set[str]().union(*(modules.get(source.rpartition(b".")[2], ()) for source in stars)) - found
        found |= more
        rest += more
    return found


def _imports(data: bytes, path: str) -> bool:
    """Whether an import statement in the text of a file names another file, or its package."""
    stem, folder = os.path.splitext(os.path.basename(path))[0], os.path.basename(os.path.dirname(path))
    name = folder if stem == "__init__" else stem
    return bool(re.search(rb"^\s*(?:from|import)\b.*\b%b\b" % re.escape(name.encode()), data, re.MULTILINE))
