"""Which loops run training or evaluation steps."""

from __future__ import annotations

import ast

from devlint.flow.catalog.methods import TO_DEVICE
from devlint.flow.core.interpreter import Frame
from devlint.flow.domain.values import Loader, Value
from devlint.flow.syntax import names, nodes
from devlint.flow.syntax.loops import LoopText

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
    got = {node.id for node in nodes.walk(loop.target) if isinstance(node, ast.Name)}
    moved: set[str] = set()
    statements = [node for node in inside if isinstance(node, ast.Assign)]
    for statement in sorted(statements, key=lambda statement: statement.lineno):
        parts = nodes.walk(statement.value)
        bound = {node.id for target in statement.targets for node in nodes.walk(target) if isinstance(node, ast.Name)}
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
    found = frame.interpreter.lookups.of(frame.info, frame.inside).networks
    itself = frame.owner is not None and frame.owner.is_module
    return (found | _ITSELF if itself else found) - {""}
