"""Leads: new tensors of the default device that a collective gets, by way of functions of the project perhaps."""

from __future__ import annotations

from devlint import device
from devlint.flow.catalog.concepts import COLLECTIVES
from devlint.flow.core.call import Call
from devlint.flow.core.events import Observer
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.tensors import Tensor
from devlint.sites.base import Operand
from devlint.sites.placement import Hint, HintKind


class Collectives(Observer):
    """Tensors of the default device that are given to collectives, which NCCL carries out between accelerators only."""

    wants_inlined = True
    wants_quiet = True

    def on_library_call(self, frame: Frame, call: Call, path: str) -> None:
        """A tensor of the default device is given to a collective."""
        if path not in COLLECTIVES or frame.interpreter.index.mentions("gloo"):
            return
        for node, value in zip(call.nodes, call.positional, strict=False):
            made = value if isinstance(value, Tensor) else None
            if made is None or made.origin.node is None or not any(leaf.implied for leaf in made.device.leaves()):
                continue
            group = Operand(call.node, path, device.symbol("NCCL", "NCCL"), many=True, certain=True)
            frame.emit(Hint(call.node, scope_of(frame), HintKind.COLLECTIVE, frame.operand(node, made), group))
