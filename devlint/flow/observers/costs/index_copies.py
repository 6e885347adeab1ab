"""Indexes made on the CPU, only for torch to copy them to what they select from."""

from __future__ import annotations

import ast

from devlint.device import AVAILABLE, Device, Kind, Role
from devlint.flow.catalog.creation import INDEXES
from devlint.flow.core.events import Observer
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.tensors import Tensor
from devlint.flow.domain.values import Value
from devlint.flow.program import def_use
from devlint.flow.syntax import nodes
from devlint.flow.transfer.creations import Trail, moved_later, names_in
from devlint.sites.base import Creation
from devlint.sites.transfers import IndexCopy

_INDEX_KEYWORDS = frozenset({"start", "end", "step", "row", "col", "offset", "dtype"})


class IndexCopies(Observer):
    """Copies of indexes that could have been made where they are used."""

    wants_inlined = True

    def on_index(
        self, frame: Frame, node: ast.Subscript, tensor: Tensor, indexes: list[tuple[ast.expr, Value]]
    ) -> None:
        """A site for each index that is made for nothing else."""
        if not tensor.certain or (frame.inlined and frame.owner is not None):
            return
        place = frame.settled(tensor.device).assume(AVAILABLE, True)
        if not all(_is_away(frame, leaf) for leaf in place.leaves()):
            return
        found: set[ast.AST] = set()
        for part, index in indexes:
            made = _made_index(frame, index)
            if made is None or made.node in found:
                continue
            trail = Trail(frame, made.node, None)
            if (trail.passes_on(part) or moved_later(trail, node, part, node.slice)) and not _is_mask(trail, part):
                found.add(made.node)
                frame.emit(IndexCopy(part, scope_of(frame), frame.operand(node.value, tensor), made))


def _is_away(frame: Frame, place: Device) -> bool:
    """Whether something is on an accelerator, where there is one: the arguments of a module are, too."""
    chosen = place.kind is Kind.SYMBOL and (place.role is Role.DEVICE or frame.after_init)
    return chosen or place.kind is Kind.ACCELERATOR


def _made_index(frame: Frame, index: Value) -> Creation | None:
    """The call that made an index on the CPU because nobody said otherwise."""
    made = index.origin.node if isinstance(index, Tensor) else None
    if not isinstance(index, Tensor) or index.origin.factory not in INDEXES or not isinstance(made, ast.Call):
        return None
    asked = any(keyword.arg not in _INDEX_KEYWORDS for keyword in made.keywords)
    return None if asked or not def_use.holds(frame.code, made) else Creation(made, index.origin.factory)


def _is_mask(trail: Trail, part: ast.expr) -> bool:
    """Whether the numbers may have become a mask on their way to an index."""
    ways: list[ast.expr] = [part]
    for node in trail.frame.inside:
        if isinstance(node, ast.Assign) and (trail.live | trail.spent).intersection(*map(names_in, node.targets)):
            ways.append(node.value)
    inside = (inner for way in ways for inner in nodes.walk(way))
    return any(isinstance(inner, ast.Compare) or getattr(inner, "attr", "") == "bool" for inner in inside)
