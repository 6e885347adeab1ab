"""What the text around a move says of time: whether a loop, or each call, copies the same again, and who reads it."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from devlint.device import Device, Kind, Role
from devlint.flow.catalog.creation import FROM_VALUES
from devlint.flow.catalog.methods import TO_DEVICE
from devlint.flow.core.interpreter import Frame
from devlint.flow.domain.tensors import Loader, Tensor
from devlint.flow.domain.values import Const, Sequence, Value
from devlint.flow.program import def_use
from devlint.flow.syntax import names, nodes
from devlint.flow.syntax.loops import LoopText
from devlint.flow.transfer.memory import written
from devlint.sites.base import Creation, Operand, Scope, Step

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
    return loop is not None and names.chains(*expressions).isdisjoint(frame.interpreter.loop_text(loop).changes)


def invariant_copy(
    frame: Frame, scope: Scope, move: ast.Call, value: Operand, target: ast.AST | None, made: Creation | None
) -> bool:
    """Whether every step, or every round in a module's code, copies the same tensor of the CPU to the same device."""
    known = value.certain and value.device.kind is Kind.CPU and not frame.interpreter.muted
    receiver = value.node
    if not isinstance(receiver, ast.expr) or not known or scope.sometimes or not (scope.step or scope.module):
        return False
    if made is None or made.function not in FROM_VALUES or made.node not in nodes.walk(receiver):
        return invariant(frame, receiver, target)
    fixed = target is None or unchanged(frame, target)
    return fixed and not made.generator and same_values(frame, made.node) and left_alone(frame, move)


def copied_by_every_call(
    frame: Frame, move: ast.Call, receiver: ast.expr, tensor: Tensor, target: Device | None
) -> Step | None:
    """Where ``__init__`` keeps on the CPU what each call of this method copies to the device of its arguments."""
    owner, info = frame.owner, frame.info
    if tensor.origin.kept is None or owner is None or info is None:
        return None
    if owner.is_module or info.initialises or frame.inlined:
        return None
    own = isinstance(receiver, ast.Attribute) and names.dotted(receiver.value) == "self"
    if not own or not isinstance(receiver, ast.Attribute) or target is None or target.accelerates() is False:
        return None
    known = owner.linearization()
    if any(receiver.attr in cls.stored for cls in known) or any("cache" in name for name in info.decorators):
        return None
    asked = any(leaf.role is Role.INPUT for leaf in target.leaves()) and target.known
    return tensor.origin.kept if asked and not _stored_away(info.nodes, move) else None


def _stored_away(inside: list[ast.AST], move: ast.Call) -> bool:
    """Whether the result is kept in an attribute or a container, where the next call may find it."""
    statements = (node for node in inside if isinstance(node, ast.Assign) and node.value is move)
    return any(not isinstance(target, ast.Name) for statement in statements for target in statement.targets)


def _begins_with(node: ast.expr, call: ast.Call) -> bool:
    """Whether an expression is ``call``, or a chain of methods that begins with it."""
    while node is not call and isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node is call


def same_values(frame: Frame, call: ast.Call) -> bool:
    """Whether a creation reads literals alone, and wants no gradient."""
    if any(keyword.arg in ("requires_grad", "out", None) for keyword in call.keywords):
        return False
    data = call.args[:1] or [keyword.value for keyword in call.keywords if keyword.arg == "data"]
    return bool(data) and all(_is_literal(frame, part) for part in data)


def _is_literal(frame: Frame, node: ast.expr) -> bool:
    if isinstance(node, (ast.List, ast.Tuple)):
        return all(_is_literal(frame, element) for element in node.elts)
    if isinstance(node, ast.UnaryOp):
        return _is_literal(frame, node.operand)
    if isinstance(node, ast.Name):
        return unchanged(frame, node) and _is_constant(frame.lookup(node.id))
    return isinstance(node, ast.Constant)


def _is_constant(value: Value | None) -> bool:
    if isinstance(value, Sequence):
        return value.items is not None and all(_is_constant(item) for item in value.items)
    return isinstance(value, Const)


def left_alone(frame: Frame, call: ast.Call) -> bool:
    """Whether the loop neither changes the result nor binds its name to anything else."""
    loop = frame.loops[-1].node if frame.loops else None
    if loop is None:
        return False
    bound = [
        names.dotted(target)
        for node in frame.interpreter.loop_text(loop).inside
        if isinstance(node, ast.Assign) and _begins_with(node.value, call)
        for target in node.targets
    ]
    changes = Counter(frame.interpreter.loop_text(loop).assigned)
    return all(bound) and all(changes[name] <= 1 for name in bound)


def varies(frame: Frame, test: ast.expr) -> bool:
    """Whether the rounds of the innermost loop may differ in a condition: it calls something, or they change it."""
    if not frame.loops:
        return True
    changes = frame.interpreter.loop_text(frame.loops[-1].node).changes
    calls = any(isinstance(node, (ast.Call, ast.NamedExpr)) for node in nodes.walk(test))
    return calls or not names.chains(test).isdisjoint(changes)


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
    """Whether a loop runs training or evaluation steps: more than one."""
    rounds = frame.interpreter.loop_text(node)
    if rounds.picks:
        return False
    if isinstance(iterated, Loader):
        return True
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
        elif names.root(statement.value) in got:
            # a part of the batch
            got |= bound
    known = networks(frame)
    for node in inside:
        if isinstance(node, ast.Call) and names.dotted(node.func) in known:
            given = nodes.given(node)
            if any(_is_move(part, got) or names.root(part) in moved for part in given):
                return True
    return False


def _is_move(node: ast.AST, got: set[str]) -> bool:
    """Whether a node is `.to()` or `.cuda()` of something that a round got."""
    return names.method(node) in TO_DEVICE and names.root(node) in got


def networks(frame: Frame) -> frozenset[str]:
    """What the function evaluates or trains, and so are networks; a module is one itself."""
    found = def_use.networks(frame.code)
    itself = frame.owner is not None and frame.owner.is_module
    return (found | _ITSELF if itself else found) - {""}
