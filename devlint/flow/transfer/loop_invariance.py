"""What the text around a move says of time: whether a loop changes what it copies, and who reads a copy under way."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devlint.flow.catalog.methods import TO_DEVICE
from devlint.flow.core.interpreter import Frame
from devlint.flow.domain.values import Loader, Value
from devlint.flow.program import def_use
from devlint.flow.syntax import names, nodes
from devlint.flow.syntax.loops import LoopText
from devlint.flow.transfer.memory import written
from devlint.sites.base import Step

_READERS = frozenset("numpy item tolist sum mean max min argmax any all float".split())
"""Methods of a host tensor that read it."""
_TAKERS = frozenset("print float int bool list np.array np.asarray numpy.array numpy.asarray".split())
"""Functions that read a host tensor."""
_QUICK = frozenset("len range isinstance append extend enumerate zip time perf_counter monotonic".split())
"""Calls that surely wait for no device."""
_READ = "read here, before anything has waited for it"


def invariant(frame: Frame, receiver: ast.expr, target: ast.AST | None) -> bool:
    """Whether each round of the innermost loop finds the same, unchanged value in ``receiver``, for one device."""
    named = bool(names.dotted(receiver))
    return named and unchanged(frame, receiver, *(() if target is None else (target,))) and not written(frame, receiver)


def unchanged(frame: Frame, *expressions: ast.AST) -> bool:
    """Whether the innermost loop leaves everything alone that the expressions name."""
    loop = frame.loops[-1].node if frame.loops else None
    named = {
        names.dotted(node)
        for expression in expressions
        for node in nodes.walk(expression)
        if isinstance(node, (ast.Name, ast.Attribute))
    }
    return loop is not None and named.isdisjoint(frame.interpreter.loop_text(loop).changes)


def varies(frame: Frame, test: ast.expr) -> bool:
    """Whether the rounds of the innermost loop may differ in a condition: it calls something, or they change it."""
    if not frame.loops:
        return True
    changes = frame.interpreter.loop_text(frame.loops[-1].node).changes
    for node in nodes.walk(test):
        if isinstance(node, (ast.Call, ast.NamedExpr)):
            return True
        if isinstance(node, (ast.Name, ast.Attribute)) and names.dotted(node) in changes:
            return True
    return False


def read_early(frame: Frame, call: ast.Call) -> Step | None:
    """The first read of what an asynchronous copy returns, where surely nothing waits for it before."""
    body = frame.info.node if frame.info else frame.interpreter.tree
    for statement, rest in _statements(body):
        inside = nodes.walk(statement)
        if call not in inside or any(isinstance(node, ast.stmt) for node in inside[1:]):
            continue
        user = next((node for node in inside if _reads(node, call)), None)
        if user is not None:
            return Step(user, _READ)
        target = statement.targets[0] if isinstance(statement, ast.Assign) and statement.value is call else None
        return _next_read(target.id, rest) if isinstance(target, ast.Name) else None
    return None


def _statements(body: ast.AST) -> Iterator[tuple[ast.stmt, list[ast.stmt]]]:
    """Every statement of a definition, with those that follow in its block."""
    for node in nodes.walk(body):
        for block in nodes.blocks(node):
            yield from ((statement, block[at + 1 :]) for at, statement in enumerate(block))


def _next_read(name: str, following: list[ast.stmt]) -> Step | None:
    """The read of ``name`` that comes before anything which may wait, or which gives the name to something else."""
    for statement in following:
        # a call is done where it ends, what is inside of it before: `f(x.numpy())` reads first
        for node in sorted(nodes.walk(statement), key=_done):
            for held in _parts(node):
                if isinstance(held, ast.Name) and held.id == name and _reads(node, held):
                    return Step(node, _READ)
            if isinstance(node, ast.Call) and names.dotted(node.func).rpartition(".")[2] not in _QUICK:
                return None
            if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load):
                return None
            if isinstance(node, (ast.Return, ast.Raise, ast.Break, ast.Continue, ast.With, ast.Try)):
                return None
    return None


def _parts(node: ast.AST) -> list[ast.AST]:
    """The operands of a node that may read a tensor."""
    if isinstance(node, ast.Call):
        receiver = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        return [*receiver, *node.args]
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    return [node.value] if isinstance(node, ast.FormattedValue) else []


def _reads(node: ast.AST, held: ast.AST) -> bool:
    """Whether a node reads the values of ``held``, which is one of its operands."""
    if held not in _parts(node):
        return False
    if not isinstance(node, ast.Call):
        return True
    if isinstance(node.func, ast.Attribute) and node.func.value is held:
        return node.func.attr in _READERS
    return names.dotted(node.func) in _TAKERS


def _done(node: ast.AST) -> tuple[int, ...]:
    """The order in which nodes are done: by their ends, what begins later before what it is a part of."""
    start = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
    end = getattr(node, "end_lineno", 0) or 0, getattr(node, "end_col_offset", 0) or 0
    return (*end, -start[0], -start[1])


_TRAINS = frozenset({"backward", "zero_grad"})


_ITSELF = frozenset({"self", "self.forward"})


def is_step_loop(frame: Frame, node: ast.AST, iterated: Value) -> bool:
    """Whether a loop runs training or evaluation steps."""
    if isinstance(iterated, Loader):
        return True
    rounds = frame.interpreter.loop_text(node)
    if not rounds.attributes.isdisjoint(_TRAINS):
        return True
    return isinstance(node, (ast.For, ast.AsyncFor)) and _evaluates(frame, node, rounds)


def _evaluates(frame: Frame, loop: ast.For | ast.AsyncFor, rounds: LoopText) -> bool:
    """Whether each round moves what it got, and calls a network with that."""
    if rounds.attributes.isdisjoint(TO_DEVICE):
        return False
    inside = rounds.inside
    got = names.inside(loop.target)
    moved: set[str] = set()
    statements = [node for node in inside if isinstance(node, ast.Assign)]
    for statement in sorted(statements, key=lambda statement: statement.lineno):
        parts = nodes.walk(statement.value)
        bound = names.inside(*statement.targets)
        if any(_is_move(part, got) for part in parts):
            moved |= bound
        elif _root(statement.value) in got:
            # a part of the batch
            got |= bound
    known = networks(frame)
    for node in inside:
        if isinstance(node, ast.Call) and names.dotted(node.func) in known:
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            if any(_is_move(part, got) or _root(part) in moved for part in given):
                return True
    return False


def _is_move(node: ast.AST, got: set[str]) -> bool:
    """Whether a node is `.to()` or `.cuda()` of something that a round got."""
    moves = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in TO_DEVICE
    return moves and _root(node) in got


def _root(node: ast.AST) -> str:
    """The name with which a chain such as `batch["x"].float().to(device)` begins, empty where it is none."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def networks(frame: Frame) -> frozenset[str]:
    """What the function calls `eval()` or `train()` of, and so are networks; a module is one itself."""
    found = def_use.networks(frame.code)
    itself = frame.owner is not None and frame.owner.is_module
    return (found | _ITSELF if itself else found) - {""}
