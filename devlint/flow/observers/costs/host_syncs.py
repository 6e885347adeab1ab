"""Places where the host reads what the device has computed, and so waits for it."""

from __future__ import annotations

import ast

from devlint.device import Kind, Role
from devlint.flow.catalog import torch_table
from devlint.flow.catalog.methods import FETCHES
from devlint.flow.core.call import Call, Loop
from devlint.flow.core.events import Observer
from devlint.flow.core.interpreter import Frame, Interpreter
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.tensors import Batches, Tensor, as_tensor, surely_tensor
from devlint.flow.domain.values import Value
from devlint.flow.program import training_steps
from devlint.flow.syntax import names, nodes
from devlint.flow.transfer import loop_invariance
from devlint.flow.transfer.device_queue import DeviceQueue
from devlint.immutable import immutable
from devlint.sites.base import Operand
from devlint.sites.costs import Sync

_MOVES = frozenset({"cpu", "to"})


@immutable(frozen=True, slots=True)
class _Moved:
    """A tensor that every forward pass moves to the host at ``node``."""

    node: ast.AST
    value: Operand


class HostSyncs(Observer):
    """Waits of the host, and how often they come."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._allowed: set[ast.AST] = set()
        self._moved: _Moved | None = None

    def on_arguments(self, frame: Frame, node: ast.Call) -> None:
        """What a function takes on the CPU alone has to be brought there."""
        if (names.method(node) or getattr(node.func, "id", "")) in torch_table.host_functions():
            self._allowed.update(nodes.given(node))

    def on_method(self, frame: Frame, call: Call, receiver: Value, node: ast.Attribute) -> None:
        """What was moved to the host goes into an array: the move was for nothing but the values."""
        moved = self._moved if node.attr == "numpy" else None
        if moved is not None and moved.node is node.value:
            frame.emit(Sync(call.node, scope_of(frame), node.attr, moved.value, "forward"))

    def on_wait(self, frame: Frame, node: ast.AST, read: ast.expr, value: Value, spelled: str) -> None:
        """A site, unless the host has just waited."""
        if frame.component(DeviceQueue).is_empty(frame, node) or node in self._allowed:
            return
        region = _region(frame, read, value, spelled)
        if spelled in _MOVES and region in ("loop", "forward", "check"):
            # perhaps this is where the tensor has to go on; if not, an array will be made of it next
            self._moved = _Moved(node, frame.operand(read, value)) if region == "forward" else None
        elif region:
            frame.emit(Sync(node, scope_of(frame), spelled, frame.operand(read, value), region))


def _region(frame: Frame, node: ast.expr, value: Value, spelled: str) -> str:
    """How often the host waits here, empty where that is unknown, or no more often than it has to."""
    step = next((loop for loop in reversed(frame.loops) if loop.step and not loop.encloses), None)
    placed = as_tensor(value).device.kind is not Kind.UNKNOWN or bool(frame.info and frame.info.device_aware)
    proven = surely_tensor(value) and as_tensor(value).certain and placed
    may_wait = proven or isinstance(value, (Tensor, Batches))
    if step is not None:
        if frame.interpreter.loop_text(step.node).trains:
            return "train" if may_wait or _is_loss(frame, node, step, spelled) else ""
        # an evaluation has to read its results, but not one by one, and not what never changes
        parts = step is not frame.loops[-1] or loop_invariance.invariant(frame, node, None)
        return "element" if parts and proven else ""
    if proven and frame.loops:
        # once in an epoch is seldom
        return "" if frame.loops[-1].encloses else "loop"
    info = frame.info
    if info is None or info.initialises or frame.branches or frame.handler:
        return ""
    if proven and not frame.tried:
        if frame.after_init and info.name == "forward":
            # what the module was given and did not register stays where that was made
            leaves = as_tensor(value).device.leaves()
            kept = names.root(node) == "self" and any(leaf.role is Role.INPUT for leaf in leaves)
            return "" if kept else "forward"
        if frame.checking:
            return "check"
    seldom = frame.exits or any(loop.encloses or loop.skips for loop in frame.loops)
    return (
        "call" if not seldom and (may_wait or (_fetched(node, spelled) and training_steps.is_loss(info, node))) else ""
    )


def _is_loss(frame: Frame, node: ast.expr, loop: Loop, spelled: str) -> bool:
    """Whether an expression is a loss that goes backward in a loop of steps, perhaps out of a list of such."""
    rounds = frame.interpreter.loop_text(loop.node)
    known = training_steps.losses(rounds.inside)
    if not isinstance(node, ast.Name):
        return _fetched(node, spelled) and training_steps.is_among(node, known)
    name = _listed(frame, node.id)
    # what gets another value on the way may be a number by then
    return name in known and (spelled in FETCHES or rounds.assigned.count(name) == 1)


def _fetched(node: ast.expr, spelled: str) -> bool:
    """Whether it is read as a tensor only is, where an attribute may be a number by then."""
    return not isinstance(node, ast.Attribute) or spelled in FETCHES


def _listed(frame: Frame, name: str) -> str:
    """The name of the list out of which a comprehension takes what it calls ``name``, or else this name."""
    node = frame.loops[-1].node
    for generator in getattr(node, "generators", ()):
        if names.is_name(generator.target, name) and isinstance(generator.iter, ast.Name):
            return generator.iter.id
    return name
