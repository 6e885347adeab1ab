"""Tensors kept in plain attributes of modules, and where the module's methods meet them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from devlint.device import IMPLIED_CPU, Kind, Role
from devlint.flow.core.call import Call
from devlint.flow.core.events import Meeting, Observer, Pair
from devlint.flow.core.interpreter import Frame, Interpreter
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.objects import Stateful
from devlint.flow.domain.provenance import Origin
from devlint.flow.domain.tensors import Tensor, as_tensor
from devlint.flow.domain.values import Value
from devlint.flow.program import mutations
from devlint.flow.syntax import names
from devlint.sites.base import Act, Operand, Scope, Step
from devlint.sites.placement import Attribute
from devlint.sites.transfers import Transfer


@dataclass
class _Kept:
    """One attribute, as ``__init__`` made it, and its uses."""

    owner: str
    name: str
    value: Operand
    scope: Scope
    kind: str = "tensor"
    uses: dict[ast.AST, Step] = field(default_factory=dict)
    copies: dict[ast.AST, str] = field(default_factory=dict)
    moved: bool = False
    kept: bool = False
    open: bool = False
    chained: bool = False
    follows: bool = False
    fetched: Step | None = None
    stopped: Step | None = None
    later: bool = False


class UnregisteredTensors(Observer):
    """The plain tensor attributes of a file's modules."""

    wants_inlined = True
    wants_quiet = True

    def __init__(self, interpreter: Interpreter) -> None:
        self._known: dict[tuple[str, str], _Kept] = {}

    def on_store(self, frame: Frame, target: ast.Attribute, base: Value, value: Value, node: ast.AST) -> None:
        """``__init__`` keeps a tensor, or what is made of tensors, without registering it."""
        held = as_tensor(value.tensors[0]) if isinstance(value, Stateful) and value.tensors else value
        if not isinstance(held, Tensor) or held.origin.attribute is None or not isinstance(node, ast.expr):
            return
        if held.origin.attribute.node is not node:
            return
        if frame.owner is not None and held.origin.attribute_of == (frame.owner.key, target.attr):
            self._declare(frame, node, held, target.attr, "tensor" if held is value else "distribution")

    def on_move(self, frame: Frame, transfer: Transfer, receiver: Value, call: Call) -> None:
        """An attribute is copied to where the inputs are."""
        kept, place = self._find(receiver), transfer.target
        moved = transfer.value.node
        if kept is None or place is None or not isinstance(receiver, Tensor) or not isinstance(moved, ast.expr):
            return
        # it stayed on the CPU, where the module may have gone
        left = frame.after_init and receiver.device.kind is Kind.CPU
        if not (left or _is_of_a_stranger(frame, receiver)):
            return
        if frame.info and any("cache" in name for name in frame.info.decorators):
            # moved once for each device, not on every call
            return
        attribute = names.dotted(moved)
        body = frame.info.nodes if frame.info else ()
        statements = [node for node in body if isinstance(node, ast.Assign) and node.value is call.node]
        again = "." in attribute and any(names.dotted(node.targets[0]) == attribute for node in statements)
        if not frame.interpreter.muted:
            kept.copies.setdefault(call.node, frame.info.name if frame.info else "")
        kept.uses.setdefault(
            call.node, Step(call.node, "moved here" if again else "moved here, on every call", Act.MOVED)
        )
        kept.moved = True
        kept.kept = kept.kept or again
        given = place.kind is Kind.SYMBOL and place.role is Role.INPUT
        kept.follows = kept.follows or (kept.chained and again and given)

    def on_meet(self, frame: Frame, node: ast.AST, operator: str, met: list[Meeting], apart: list[Pair]) -> None:
        """An attribute meets a tensor that lives where the module does."""
        if frame.interpreter.muted or not frame.after_init:
            # seen by a caller, with its tensors
            return
        for pair in apart:
            for (where, value, *_), (_, other, *_) in (pair, pair[::-1]):
                beside = as_tensor(other)
                if beside.certain and (_lives_with_inputs(beside) or beside.device.accelerates() is not False):
                    self._use(value, where, "meets a tensor on the module's device here")

    def on_stray_inputs(self, frame: Frame, inputs: list[tuple[ast.AST, Value, str]]) -> None:
        """An attribute goes into a module that has gone elsewhere."""
        for node, value, _ in inputs if frame.after_init else ():
            self._use(value, node, "goes into a module on the module's device here")

    def _use(self, value: Value, node: ast.AST, label: str) -> None:
        """The attribute is used where the module is.

        What was moved under some condition says nothing: they may meet only where it was not, on the CPU.
        """
        kept = self._find(value) if isinstance(value, Tensor) and value.origin.attribute is not None else None
        if kept is None or not isinstance(value, Tensor) or value.many is False:
            return
        if value.many is None and isinstance(node, ast.Subscript):
            # one of its numbers perhaps, which may meet any tensor
            return
        if value.device.kind is not Kind.CHOICE or value.device == kept.value.device:
            kept.uses.setdefault(node, Step(node, label))

    def left(self, frame: Frame, name: str, node: ast.expr) -> Tensor:
        """What a method other than ``__init__``, that of ``frame``, leaves in an attribute, as the others find it."""
        owner = frame.owner.key if frame.owner else ""
        step = Step(node, f"`self.{name}` is kept here, unregistered")
        value = Tensor(IMPLIED_CPU, certain=True, origin=Origin(attribute=step, attribute_of=(owner, name)))
        self._declare(frame, node, value, name, "tensor")
        known = self._find(value)
        if known is not None:
            known.later = True
        return value

    def _declare(self, frame: Frame, node: ast.expr, value: Tensor, name: str, kind: str) -> None:
        owner = frame.owner.name if frame.owner else ""
        kept = _Kept(owner, name, frame.operand(node, value), scope_of(frame), kind)
        kept.open = bool(frame.owner and frame.owner.is_open)
        kept.chained = kept.open and bool(frame.info and "__init__" in map(names.of_super, frame.info.nodes))
        if frame.owner is not None:
            read, move = mutations.fetched(frame.owner, name), mutations.own_move(frame.owner)
            kept.fetched = None if read is None else Step(read, "a number is made of it here", Act.FETCHED)
            kept.stopped = None if move is None else Step(move.node, f"`{move.name}()` does not call that of the bases")
        self._known.setdefault((owner, name), kept)

    def names(self, owner: str) -> list[str]:
        """The plain tensor attributes of a class."""
        return [name for known, name in self._known if known == owner]

    @property
    def any(self) -> bool:
        """Whether there are any."""
        return bool(self._known)

    def sites(self) -> Iterator[Attribute]:
        """A site for each attribute that a method uses with its inputs."""
        for kept in self._known.values():
            if kept.uses:
                uses = tuple(sorted(kept.uses.values(), key=lambda step: getattr(step.node, "lineno", 0)))
                yield Attribute(
                    kept.value.node, kept.scope, kept.owner, kept.name, kept.value, uses, kept.moved, kept.kept,
                    kept.kind, open=kept.open, follows=kept.follows, copies=tuple(kept.copies.items()),
                    fetched=kept.fetched, stopped=kept.stopped, later=kept.later,
                )  # fmt: skip

    def _find(self, value: Value) -> _Kept | None:
        origin = value.origin.attribute_of if isinstance(value, Tensor) else None
        return None if origin is None else self._known.get(origin)


def _is_of_a_stranger(frame: Frame, tensor: Tensor) -> bool:
    """Whether a method moves a tensor of a class of which it is not known what it is."""
    later = frame.info is not None and not frame.info.initialises and not frame.inlined
    return later and frame.owner is not None and frame.owner.is_open and not tensor.device.known


def _lives_with_inputs(tensor: Tensor) -> bool:
    """Whether a tensor is where the caller put the module or its inputs."""
    return tensor.device.kind is Kind.SYMBOL and tensor.device.role in (Role.INPUT, Role.PLACE)
