"""Code behind a switch that nobody turns: a flag whose default keeps away from it, and which no caller gives."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple, TypeAlias

from devlint.check.filters import project_files
from devlint.finding import Finding, Severity
from devlint.source.files import held

_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_TEXTS = (".yaml", ".yml", ".json", ".toml", ".cfg", ".ini", ".sh", ".ipynb")
"""The ends of the names of files that give switches, besides programs."""
_SPELLINGS = {False: "false|no|off|0", True: "true|yes|on|1"}
"""How other languages than Python spell a default, in lower case."""
_LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_BY_USERS = re.compile(
    rb"\b(?:LightningCLI|jsonargparse|tyro|fire\.Fire|Fire\(|draccus|gin\.config\w*|simple_parsing)\b"
)
"""What lets users give any parameter of what they name."""


class Switch(NamedTuple):
    """A flag: the parameter's name, the name of who is called with it, its place there, and the default."""

    name: str
    called: str
    place: int | None
    default: bool


def untouched(findings: Sequence[Finding]) -> list[Finding]:
    """Those of a run's findings, but for errors, in a branch that is not taken as long as nobody sets a switch.

    Whoever may set it counts: a caller by keyword or by place, a configuration, a command line, or an attribute.
    """
    mild = (one for one in findings if one.severity < Severity.ERROR and not one.span.cell)
    parsed, given = cache(project_files.parsed), cache(_given)
    found = []
    for finding, root in project_files.rooted(mild):
        tree = parsed(finding.filename) if root else None
        if tree is not None and any(not given(root, one) for one in _keeping_away(tree, finding.span.row)):
            found.append(finding)
    return found


def _keeping_away(tree: ast.Module, row: int) -> Iterator[Switch]:
    """The switches each of which, by its default alone, keeps a program away from a row."""
    around = [node for node in ast.walk(tree) if _spans(node, row)]
    classes = [node for node in around if isinstance(node, ast.ClassDef)]
    switches: dict[str, Switch] = {}
    for function in around:
        if isinstance(function, _FUNCTIONS):
            owner = next((one for one in classes if function in one.body), None)
            switches.update({} if owner is None else _attributes(owner))
            switches.update(_parameters(function, owner))
    for test, wanted in _conditions(around, row):
        yield from _against(test, wanted, switches)


def _conditions(around: Sequence[ast.AST], row: int) -> Iterator[tuple[ast.expr, bool]]:
    """The conditions that have to hold, or not, for a program to come to a row."""
    for node in around:
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, ())
            if isinstance(block, ast.expr):
                block = [block]
            here = next((index for index, one in enumerate(block) if _spans(one, row)), None)
            if here is None:
                continue
            if isinstance(node, ast.If | ast.IfExp):
                yield node.test, name == "body"
            for one in block[:here]:
                if isinstance(one, ast.If) and not one.orelse and isinstance(one.body[-1], _LEAVING):
                    yield one.test, False


def _spans(node: ast.AST, row: int) -> bool:
    first = getattr(node, "lineno", None)
    return first is not None and first <= row <= (getattr(node, "end_lineno", None) or first)


def _parameters(function: _Function, owner: ast.ClassDef | None) -> Iterator[tuple[str, Switch]]:
    """The parameters of a function that have a constant default, and are not bound again."""
    called = owner.name if owner is not None and function.name == "__init__" else function.name
    names = (node for node in ast.walk(function) if isinstance(node, ast.Name))
    bound = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    for place, argument, default in _with_defaults(function.args):
        value = default.value if isinstance(default, ast.Constant) else None
        if isinstance(value, bool) and argument.arg not in bound:
            at = place if place is None or owner is None else place - 1
            yield argument.arg, Switch(argument.arg, called, at, value)


def _with_defaults(given: ast.arguments) -> Iterator[tuple[int | None, ast.arg, ast.expr | None]]:
    """All parameters of a function, each with its place, if it has one, and its default."""
    placed = [*given.posonlyargs, *given.args]
    without = len(placed) - len(given.defaults)
    for place, one in enumerate(placed):
        yield place, one, given.defaults[place - without] if place >= without else None
    for one, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        yield None, one, default


def _attributes(owner: ast.ClassDef) -> Iterator[tuple[str, Switch]]:
    """The attributes of a class that hold a switch of its constructor, and nothing else ever."""
    stored: dict[str, list[ast.expr | None]] = {}
    for node in ast.walk(owner):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            stored.setdefault(node.attr, []).append(None)
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Attribute):
            stored.setdefault(node.targets[0].attr, []).append(node.value)
    constructor = next((one for one in owner.body if isinstance(one, _FUNCTIONS) and one.name == "__init__"), None)
    switches = {} if constructor is None else dict(_parameters(constructor, owner))
    for name, values in stored.items():
        value = next((one for one in values if one is not None), None)
        if len(values) == 2 and isinstance(value, ast.Name) and value.id in switches:
            yield f"self.{name}", switches[value.id]


def _against(test: ast.expr, wanted: bool, switches: Mapping[str, Switch]) -> Iterator[Switch]:
    """The switches each of which, by its default, keeps a condition from being what is wanted."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _against(test.operand, not wanted, switches)
    elif isinstance(test, ast.BoolOp):
        if isinstance(test.op, ast.And) is wanted:
            for each in test.values:
                yield from _against(each, wanted, switches)
    else:
        same = True
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Is | ast.Eq):
            compared = test.comparators[0]
            if isinstance(compared, ast.Constant) and isinstance(compared.value, bool):
                test, same = test.left, compared.value
        switch = switches.get(ast.unparse(test))
        if switch is not None and (switch.default is same) is not wanted:
            yield switch


def _given(root: str, switch: Switch) -> bool:
    """Whether anything in a project may set a switch to something else than its default."""
    word = re.compile(rb"\b%b\b" % switch.name.encode())
    call = re.compile(rb"\b%b\b" % switch.called.encode())
    for path in itertools.islice(project_files.files(root, (".py", *_TEXTS)), project_files.MOST):
        data = held(path) or b""
        if path.endswith(".py"):
            if _BY_USERS.search(data) or ((word.search(data) or call.search(data)) and _sets(path, switch)):
                return True
        elif word.search(data) and _configures(data.decode("utf-8", "replace"), switch):
            return True
    return False


def _configures(text: str, switch: Switch) -> bool:
    """Whether a text that is no program gives a switch anything else than its default."""
    name = switch.name
    same = rf"\b{name}\b[\"'\\]*\s*[:=]\s*[\"'\\]*(?:{_SPELLINGS[switch.default]})\b|\b{name}\s*=\s*(?:\w+\.)*{name}\b"
    rest = re.sub(rf"(?i){same}", "", text)
    return re.search(rf"--{name}\b|\b{name}\b[\"'\\]*\s*[:=]", rest) is not None


def _sets(path: str, switch: Switch) -> bool:
    tree = project_files.parsed(path)
    return tree is None or any(_gives(node, switch) for node in ast.walk(tree))


def _gives(node: ast.AST, switch: Switch) -> bool:
    """Whether a node may give a switch another value than its default: forwarding one's own of that name does not."""
    if isinstance(node, ast.keyword):
        return node.arg == switch.name and not _is_same(node.value, switch)
    if isinstance(node, ast.arguments):
        own = [default for _, one, default in _with_defaults(node) if one.arg == switch.name]
        return any(default is None or not _is_same(default, switch) for default in own)
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in (switch.called, "partial", "__init__") and switch.place is not None:
            several = any(isinstance(one, ast.Starred) for one in node.args)
            if several or (len(node.args) > switch.place and not _is_same(node.args[switch.place], switch)):
                return True
        return any(isinstance(one, ast.Constant) and one.value == f"--{switch.name}" for one in node.args) or (
            name == "setattr" and len(node.args) > 1 and not isinstance(node.args[1], ast.Constant)
        )
    if isinstance(node, ast.Dict):
        keys = zip(node.keys, node.values, strict=True)
        return any(
            isinstance(key, ast.Constant) and key.value == switch.name and not _is_same(value, switch)
            for key, value in keys
        )
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        named = any(
            (one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "")) == switch.name
            or (isinstance(one, ast.Subscript) and getattr(one.slice, "value", None) == switch.name)
            for one in targets
        )
        return named and node.value is not None and not _is_same(node.value, switch)
    return isinstance(node, ast.For | ast.NamedExpr) and getattr(node.target, "id", "") == switch.name


def _is_same(value: ast.expr, switch: Switch) -> bool:
    """Whether a value is the default, or one's own switch of that name."""
    if isinstance(value, ast.Constant):
        return value.value is switch.default
    name = value.attr if isinstance(value, ast.Attribute) else getattr(value, "id", "")
    return bool(name == switch.name)
