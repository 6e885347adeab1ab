"""What is asked again for each site of a definition, collected once: a definition may have thousands of sites."""

from __future__ import annotations

import ast
import bisect
import itertools
import sys
from collections.abc import Collection, Iterator

from devlint.flow.catalog.concepts import COLLECTIVES
from devlint.flow.catalog.methods import MODES, MOVERS
from devlint.flow.program.symbols import ClassInfo, FunctionInfo, Index
from devlint.flow.syntax import names, nodes
from devlint.flow.syntax.nodes import derived

DESCRIPTIONS = frozenset(
    "shape size dim numel nelement device dtype ndim stride layout is_cuda get_device element_size".split()
)
"""Attributes and methods that tell of a tensor without reading it."""
_GENERATIONS = 16


Code = FunctionInfo | Index
"""A function, or the top level of a file."""


@derived
def called(code: Code | ClassInfo) -> list[tuple[ast.Call, str]]:
    """Every call in some code, with the canonical name of what it calls."""
    return [(call, code.index.resolve(names.dotted(call.func))) for call in code.calls]


@derived
def for_collectives(code: Code) -> frozenset[int]:
    """The calls that make or move the tensors which collectives are given, and what they call and spell out, by id."""
    given = [part for call, path in called(code) if path in COLLECTIVES for part in nodes.given(call)]
    parts = [part for whole in given for part in (whole, *getattr(whole, "elts", ()))]
    held = {part.id for part in parts if isinstance(part, ast.Name)}
    for statement in code.of(ast.Assign) if held else ():
        if any(isinstance(target, ast.Name) and target.id in held for target in statement.targets):
            parts.append(statement.value)
    for call in code.calls if held else ():
        if names.method(call) == "append" and names.root(call) in held:
            parts += call.args
    made = [call for part in parts for call in _made(part)]
    literals = [given for call in made for given in nodes.given(call) if isinstance(given, ast.Constant)]
    return frozenset(map(id, (*made, *(call.func for call in made), *literals)))


def _made(node: ast.expr) -> Iterator[ast.Call]:
    """The calls that an expression is the result of, one after the other; of a list, those of its items."""
    while isinstance(node, (ast.Call, ast.Attribute, ast.BinOp, ast.ListComp)):
        if isinstance(node, ast.Call):
            yield node
            node = node.func
        elif isinstance(node, ast.Attribute):
            node = node.value
        else:
            node = node.left if isinstance(node, ast.BinOp) else node.elt


def _root(code: Code) -> ast.AST:
    return code.tree if isinstance(code, Index) else code.node


def holds(code: Code, node: ast.AST) -> bool:
    """Whether a node belongs to some code."""
    return id(node) in _identities(code)


@derived
def _identities(code: Code) -> frozenset[int]:
    return frozenset(map(id, code.nodes))


@derived
def last_read(code: Code) -> dict[str, int]:
    """The last row where each name is read, but for what only describes it."""
    rows: dict[str, int] = {}
    for name in read(_root(code)):
        rows[name.id] = max(rows.get(name.id, 0), name.lineno)
    return rows


@derived
def networks(code: Code) -> frozenset[str]:
    """What ``eval()`` or ``train()`` is called of, and what is called for a loss that goes backward."""
    methods = [call.func for call in code.calls if isinstance(call.func, ast.Attribute)]
    # what goes backward is no result of a pipeline
    sent = [method.value for method in methods if method.attr == "backward"]
    losses = {loss.id for loss in sent if isinstance(loss, ast.Name)}
    for statement in code.of(ast.Assign) if losses else ():
        if any(isinstance(target, ast.Name) and target.id in losses for target in statement.targets):
            sent.append(statement.value)
    called = {names.called(part) for loss in sent for part in nodes.walk(loss)}
    own = {path for path in called if code.index.resolve(path) == path}
    asked = [method.value for method in methods if method.attr in MODES]
    # `net = make().eval().to(device)`
    switched = (statement for statement in code.of(ast.Assign) if _is_switched(statement.value))
    kept = {names.dotted(target) for statement in switched for target in statement.targets}
    return frozenset({*map(names.dotted, asked), *kept, *own}) - {""}


def _is_switched(node: ast.expr) -> bool:
    """Whether it is switched to a mode, and perhaps moved, and is still what it was."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in MODES:
            return True
        if node.func.attr not in MOVERS:
            break
        node = node.func.value
    return False


def functions_around(index: Index, node: ast.AST) -> list[FunctionInfo]:
    """The functions in the same statement of the top level as a node."""
    body = index.tree.body
    at = bisect.bisect_right(body, place(node), key=place)
    first, end = place(body[at - 1]) if at else (0, 0), place(body[at]) if at < len(body) else (sys.maxsize, 0)
    return [info for info in index.functions.values() if first <= place(info.node) < end]


def apart(index: Index, first: ast.AST | None, others: tuple[ast.AST, ...]) -> bool:
    """Whether nodes stand in several functions; there may be none but the ``first``."""
    if not others:
        return False
    rows = {(info.node.lineno, info.node.end_lineno or 0) for info in index.functions.values()}
    homes = {
        max((span for span in rows if span[0] <= place(node)[0] <= span[1]), default=None)
        for node in (first, *others)
        if node is not None
    }
    return len(homes) > 1


def restores(code: Code, call: ast.Call, foreign: Collection[str] = ()) -> bool:
    """Whether what a call returns goes into ``load_state_dict``, under a name or without one.

    ``foreign`` are the names of what restores its state in a way of its own.
    """
    named = _named(code).get(id(call), ())
    given = [argument for receiver, argument in _restored(code) if receiver not in foreign]
    inside = itertools.chain.from_iterable(map(nodes.walk, given))
    return any(node is call or (isinstance(node, ast.Name) and node.id in named) for node in inside)


@derived
def _restored(code: Code) -> list[tuple[str, ast.expr]]:
    """The first argument of each ``load_state_dict`` that copies, and what it is called of."""
    return [
        (names.dotted(node.func.value), node.args[0])
        for node in nodes.walk(_root(code))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args
        if node.func.attr == "load_state_dict" and not _assigns(node)
    ]


@derived
def _named(code: Code) -> dict[int, set[str]]:
    """The names that are given what each call, by identity, returns, or what is made of that."""
    found: dict[int, set[str]] = {}
    for node in nodes.walk(_root(code)):
        if isinstance(node, ast.Assign):
            targets = {name.id for name in node.targets if isinstance(name, ast.Name)}
            for inner in nodes.walk(node.value) if targets else ():
                if isinstance(inner, ast.Call):
                    found.setdefault(id(inner), set()).update(targets)
    return found


def _assigns(call: ast.Call) -> bool:
    """Whether a call of ``load_state_dict`` may keep the tensors that it is given instead of copying their values."""
    asked = next((keyword.value for keyword in call.keywords if keyword.arg == "assign"), None)
    return asked is not None and not (isinstance(asked, ast.Constant) and asked.value is False)


def inherits_deeply(info: ClassInfo) -> bool:
    """Whether a class has more generations of bases than anybody would follow; what they keep in ``self`` is let be."""
    generation = {info}
    for _ in range(_GENERATIONS):
        generation = {parent for known in generation for parent in known.parents()}
        if not generation:
            return False
    return True


def place(node: ast.AST) -> tuple[int, int]:
    """Where a node begins."""
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def read(node: ast.AST) -> Iterator[ast.Name]:
    """The names that an expression or statement reads, but for what only describes a tensor, such as ``x.shape``."""
    rest = [node]
    while rest:
        node = rest.pop()
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                yield node
        elif not (isinstance(node, ast.Attribute) and node.attr in DESCRIPTIONS):
            rest.extend(ast.iter_child_nodes(node))
