"""What stands around a node: its function, its statement, and how to take that out."""

from __future__ import annotations

import ast
import functools
import itertools
from bisect import bisect_right
from typing import TypeAlias

from devlint.finding import Edit, Span
from devlint.flow.catalog.accelerator_api import COMPILE
from devlint.source.syntax import walk
from devlint.source.tree import Source

Way: TypeAlias = list[tuple[ast.AST, ast.AST]]
"""The nodes that lead to one, from the outside to the inside: each, and the one in it."""
_WITHOUT_GRAPH = ("no_grad", "inference_mode")
_EVALUATING = frozenset({"eval", *_WITHOUT_GRAPH})
_TRAINING = frozenset({"backward", "zero_grad"})
_FORMATS = tuple(getattr(ast, name) for name in ("JoinedStr", "TemplateStr") if hasattr(ast, name))


class _Landmarks:
    """What is looked up again for each finding, collected in one walk over the statements of a file."""

    def __init__(self, tree: ast.Module) -> None:
        self.functions: dict[int, ast.AST] = {}
        self.outermost: dict[int, ast.AST] = {}
        self.methods: set[ast.AST] = set()
        self.statements: dict[ast.AST, ast.stmt] = {}
        self.blocks: dict[ast.AST, list[ast.stmt]] = {}
        # the walk goes from the outside to the inside: the innermost function has the last word on a row
        left: list[ast.AST] = [tree]
        for node in left:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                last = node.end_lineno or node.lineno
                self.functions.update(dict.fromkeys(range(node.lineno, last + 1), node))
                # and the outermost one the first
                if node.lineno not in self.outermost:
                    self.outermost.update(dict.fromkeys(range(node.lineno, last + 1), node))
            if isinstance(node, ast.ClassDef):
                self.methods.update(node.body)
            for name in ("body", "orelse", "finalbody"):
                block: list[ast.stmt] = getattr(node, name, [])
                self.blocks.update(dict.fromkeys(block, block))
                values = ((getattr(statement, "value", None), statement) for statement in block)
                self.statements.update((value, statement) for value, statement in values if value is not None)
                left += block
            left += getattr(node, "handlers", ())
            left += getattr(node, "cases", ())


_landmarks = functools.lru_cache(maxsize=4)(_Landmarks)


def function_at(source: Source, node: ast.AST) -> ast.AST | None:
    """The innermost function around ``node``, ``None`` at the top level."""
    return _landmarks(source.tree).functions.get(int(getattr(node, "lineno", 0)))


def outermost_function(source: Source, node: ast.AST) -> ast.AST | None:
    """The function or method around ``node`` that is inside of no other one, ``None`` at the top level."""
    return _landmarks(source.tree).outermost.get(int(getattr(node, "lineno", 0)))


def is_method(source: Source, function: ast.AST | None) -> bool:
    """Whether a function is one of a class."""
    return function in _landmarks(source.tree).methods


def around(source: Source, node: ast.AST) -> ast.AST:
    """The innermost function around a node, or the whole file."""
    return function_at(source, node) or source.tree


def statement_of(source: Source, value: ast.AST) -> ast.stmt | None:
    """The statement whose whole value an expression is."""
    return _landmarks(source.tree).statements.get(value)


def way_to(source: Source, node: ast.AST) -> Way:
    """What leads to a node from the function around it, or from the top level."""
    return way(around(source, node), node) or []


def way(outer: ast.AST, node: ast.AST) -> Way | None:
    """The nodes from ``outer`` down to ``node``, each with the one that it stands in; ``None`` if it is not there."""
    if node is outer:
        return []
    head: Way = []
    if isinstance(outer, ast.Module):
        # of a whole file, only the statement is looked into
        at = bisect_right(outer.body, (getattr(node, "lineno", 0), getattr(node, "col_offset", 0)), key=_first) - 1
        if at < 0:
            return None
        head, outer = [(outer, outer.body[at])], outer.body[at]
    parents, steps = _parents(outer), []
    while node is not outer:
        parent = parents.get(node)
        if parent is None:
            return None
        steps.append((parent, node))
        node = parent
    return [*head, *reversed(steps)]


@functools.lru_cache(maxsize=8)
def _parents(root: ast.AST) -> dict[ast.AST, ast.AST]:
    return {child: node for node in walk(root) for child in ast.iter_child_nodes(node)}


def _first(statement: ast.stmt) -> tuple[int, int]:
    """Where a statement begins, decorators included."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    parts: list[ast.stmt | ast.expr] = [*decorators, statement]
    return min((part.lineno, part.col_offset - (part is not statement)) for part in parts)


@functools.lru_cache(maxsize=8)
def stores(scope: ast.AST) -> dict[str, list[int]]:
    """The rows in which something is done to each name but reading it, in order."""
    rows: dict[str, list[int]] = {}
    for node in walk(scope):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            rows.setdefault(node.id, []).append(node.lineno)
    return {name: sorted(found) for name, found in rows.items()}


@functools.lru_cache(maxsize=4)
def names_in(scope: ast.AST) -> dict[str, list[ast.Name]]:
    """Where each name stands, in the order of rows."""
    found: dict[str, list[ast.Name]] = {}
    for node in walk(scope):
        if isinstance(node, ast.Name):
            found.setdefault(node.id, []).append(node)
    return {name: sorted(nodes, key=lambda node: (node.lineno, node.col_offset)) for name, nodes in found.items()}


@functools.lru_cache(maxsize=4)
def attributes_in(scope: ast.AST) -> frozenset[str]:
    """The attributes that are asked for in a function, or a file."""
    return frozenset(node.attr for node in walk(scope) if isinstance(node, ast.Attribute))


def later_with(source: Source, statement: ast.stmt, node: ast.expr) -> ast.stmt | None:
    """The statement behind one in its block in which a node is."""
    block = _landmarks(source.tree).blocks.get(statement, ())
    at = bisect_right(block, (node.lineno, node.col_offset), key=_first) - 1
    return block[at] if at > 0 and _first(block[at]) > _first(statement) else None


def earlier(source: Source, statement: ast.AST) -> list[ast.stmt]:
    """The statements in front of one in its block; none for what is no statement."""
    block = _landmarks(source.tree).blocks.get(statement, ())
    return list(itertools.takewhile(lambda other: other is not statement, block))


def later(source: Source, statement: ast.AST) -> list[ast.stmt]:
    """The statements behind one in its block; none for what is no statement."""
    block = _landmarks(source.tree).blocks.get(statement, ())
    return list(itertools.dropwhile(lambda other: other is not statement, block))[1:]


def statement_around(source: Source, node: ast.AST) -> ast.stmt | None:
    """The innermost statement around a node."""
    return next((inner for _, inner in reversed(way_to(source, node)) if isinstance(inner, ast.stmt)), None)


@functools.lru_cache(maxsize=4)
def assigned(scope: ast.AST) -> dict[str, list[tuple[int, ast.expr]]]:
    """For each name, or attribute, the rows in which it is assigned, and what, or what a part, or the items, of."""
    found: dict[str, list[tuple[int, ast.expr]]] = {}
    for node in walk(scope):
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign)) and node.value is not None:
            targets, value = [node.target], node.value
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            targets, value = [node.target], node.iter
        else:
            continue
        # what a loop goes over, or an operator adds, belongs to no part of the target by itself
        parted = [_pairs(target, value) if isinstance(node, ast.Assign) else [(target, value)] for target in targets]
        for target, held in (pair for pairs in parted for pair in pairs):
            for part in walk(target):
                if isinstance(part, (ast.Name, ast.Attribute)) and isinstance(part.ctx, ast.Store):
                    found.setdefault(ast.unparse(part), []).append((part.lineno, held))
    return found


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """What an assignment gives to what, each to each where both sides are written out."""
    if not isinstance(target, (ast.Tuple, ast.List)) or not isinstance(value, (ast.Tuple, ast.List)):
        return [(target, value)]
    if len(target.elts) != len(value.elts) or any(isinstance(part, ast.Starred) for part in target.elts):
        return [(target, value)]
    return [pair for parts in zip(target.elts, value.elts, strict=True) for pair in _pairs(*parts)]


def idle_statement(source: Source, call: ast.AST, rest: ast.expr | None = None) -> ast.stmt | None:
    """The statement that would do nothing without ``call``: ``model.to(d)`` or ``x = x.to(d)``.

    ``rest`` is what would be left of the call, if that is not its receiver: the ``x`` of ``x = f(x)``.
    """
    found, rest = statement_of(source, call), rest or receiver(call)
    alike = rest is not None and targets_of(found) == [ast.unparse(rest)]
    return found if alike or isinstance(found, ast.Expr) else None


def targets_of(statement: ast.stmt | None) -> list[str]:
    """The code of what a statement assigns its value to, if it is such a one."""
    return [*map(ast.unparse, statement.targets)] if isinstance(statement, ast.Assign) else []


def in_format(source: Source, span: Span) -> bool:
    """Whether a place lies inside an f-string, where a quote or a new line may end it.

    Before Python 3.12 its parts may be said to stand anywhere, so that a place is no more than a name for them.
    """
    start, end = (span.row, span.column), (span.end_row, span.end_column)
    for whole, parts in _formats(source).get(span.row, ()):
        inside = (whole.row, whole.column) < start and end < (whole.end_row, whole.end_column)
        if span != whole and (inside or span in parts):
            return True
    return False


@functools.lru_cache(maxsize=2)
def _formats(source: Source) -> dict[int, list[tuple[Span, set[Span]]]]:
    """The f-strings that concern each row, each with where its parts are said to stand."""
    rows: dict[int, list[tuple[Span, set[Span]]]] = {}
    for node in walk(source.tree):
        if not isinstance(node, _FORMATS):
            continue
        whole = source.span(node)
        parts = {source.span(inner) for inner in ast.walk(node) if hasattr(inner, "lineno")}
        for row in {*range(whole.row, whole.end_row + 1), *(part.row for part in parts)}:
            rows.setdefault(row, []).append((whole, parts))
    return rows


def keyword_of(call: ast.Call, name: str) -> ast.expr | None:
    """What a call gives for an argument, by its name."""
    return next((keyword.value for keyword in call.keywords if keyword.arg == name), None)


def given(call: ast.Call) -> list[ast.expr]:
    """All the arguments of a call."""
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def method_of(node: ast.AST | None) -> str:
    """The method that an expression calls, or the function of a module; empty for anything else."""
    return node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""


def receiver(node: ast.AST | None) -> ast.expr | None:
    """What an expression calls a method of; ``None`` where it does not."""
    return node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None


def beside(source: Source, span: Span) -> tuple[str, str]:
    """What stands before a place on its first line, and behind it on its last."""
    return source.lines[span.row - 1][: span.column - 1], source.lines[span.end_row - 1][span.end_column - 1 :]


def removal(source: Source, statement: ast.stmt | None) -> Edit | None:
    """The edit that deletes a statement; ``None`` for none, or where its block or its line would be left broken."""
    if statement is None:
        return None
    span = source.span(statement)
    before, after = beside(source, span)
    if len(_landmarks(source.tree).blocks[statement]) < 2 or before.strip() or after.strip().partition("#")[0]:
        return None
    last = span.end_row == len(source.lines)
    end = (span.end_row, span.end_column) if last else (span.end_row + 1, 1)
    return Edit(Span(span.row, 1, *end), "")


def builds_no_graph(node: ast.expr) -> bool:
    """Whether a decorator or a context is ``torch.no_grad()`` or ``torch.inference_mode()``."""
    called = node.func if isinstance(node, ast.Call) else node
    return ast.unparse(called).rpartition(".")[2] in _WITHOUT_GRAPH


def is_compiled(function: ast.AST | None) -> bool:
    """Whether a function is decorated with ``torch.compile``, with or without options."""
    decorators = getattr(function, "decorator_list", ())
    called = (node.func if isinstance(node, ast.Call) else node for node in decorators)
    return any(ast.unparse(node) == COMPILE for node in called)


def evaluates(source: Source, node: ast.AST) -> bool:
    """Whether the function around a node evaluates, and trains nothing."""
    inside = attributes_in(around(source, node))
    return not inside.isdisjoint(_EVALUATING) and inside.isdisjoint(_TRAINING)
