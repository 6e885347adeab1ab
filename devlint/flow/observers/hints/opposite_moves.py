"""Branches that part a batch: one moves the one half of it and leaves the other, one does it the other way round."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from devlint import device
from devlint.device import Device
from devlint.flow.catalog.methods import MOVERS
from devlint.flow.core.events import Observer
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.state import State
from devlint.flow.domain.tensors import Batches, Tensor, as_tensor
from devlint.flow.domain.values import Opaque, Value
from devlint.flow.syntax import names, nodes
from devlint.immutable import replace
from devlint.sites.placement import Hint, HintKind

_Pair = tuple[bool, bool]
"""Of two names: which one a path has moved."""


class OppositeMoves(Observer):
    """Branches in a loop over batches of several parts."""

    def on_branch(self, frame: Frame, node: ast.If, before: State, then: State, other: State) -> None:
        """One path moves the first part and leaves the second, the other does it the other way round."""
        loop = frame.loops[-1].node if frame.loops and node.orelse else None
        if then.dead or other.dead or not isinstance(loop, ast.For):
            return
        parts = [part.id for part in nodes.walk(loop.target) if isinstance(part, ast.Name)]
        moved = [name for name in parts if _moves(before, then, name) or _moves(before, other, name)]
        for pair in itertools.permutations(moved, 2):
            if _paths(before, then, pair) != {(True, False)} or (False, True) not in _paths(before, other, pair):
                continue
            first, second = pair
            place, opposite = next(_moved(node.body, first), None), next(_moved(node.orelse, second), None)
            if place is not None and opposite is not None and all(_goes_on(loop, node, name) for name in pair):
                gone = replace(frame.operand(place, then.env[first]), text=first)
                left = replace(frame.operand(place, then.env[second]), text=second)
                frame.emit(Hint(place, scope_of(frame), HintKind.PARTED, left, gone))
                return


def _moves(before: State, after: State, name: str) -> bool:
    return name in before.env and after.env.get(name) is not before.env[name]


def _paths(before: State, after: State, pair: tuple[str, str]) -> set[_Pair | None]:
    """What the paths through a side have moved; ``None`` stands for one of which that is not known."""
    first, second = pair
    found = _parallel(_place(after.env.get(first)), _place(after.env.get(second)))
    homes = (_place(before.env[first]), _place(before.env[second]))
    return {_gone(places, homes) for places in found}


def _place(value: Value | None) -> Device:
    return as_tensor(value).device if isinstance(value, (Tensor, Opaque, Batches)) else device.UNKNOWN


def _parallel(first: Device, second: Device) -> Iterator[tuple[Device, Device]]:
    """Where both are, on each of the paths that the conditions leave open."""
    guard = next(iter((*first.guards(), *second.guards())), None)
    if guard is None:
        yield first, second
        return
    for held in (True, False):
        yield from _parallel(first.assume(guard, held), second.assume(guard, held))


def _gone(places: tuple[Device, Device], homes: tuple[Device, Device]) -> _Pair | None:
    if not all(place.known for place in (*places, *homes)):
        return None
    gone = [place != home for place, home in zip(places, homes, strict=True)]
    if any(away and place.accelerates() is False for away, place in zip(gone, places, strict=True)):
        return None
    return gone[0], gone[1]


def _moved(body: list[ast.stmt], name: str) -> Iterator[ast.expr]:
    """The calls that move what ``name`` stands for."""
    calls = (part for statement in body for part in nodes.walk(statement) if isinstance(part, ast.Call))
    for call in calls:
        if names.method(call) in MOVERS and names.called(call).rpartition(".")[0] == name:
            yield call


def _goes_on(loop: ast.For, node: ast.If, name: str) -> bool:
    """Whether the round reads ``name`` after the branches, as they leave it."""
    end = node.end_lineno or 0
    later = [statement for statement in nodes.walk(loop) if isinstance(statement, ast.stmt) and statement.lineno > end]
    uses = [
        part for statement in later for part in nodes.walk(statement) if isinstance(part, ast.Name) and part.id == name
    ]
    return bool(uses) and all(isinstance(part.ctx, ast.Load) for part in uses) and not any(_moved(later, name))
