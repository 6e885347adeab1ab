"""Tensors kept in plain attributes of modules, and where the module's methods meet them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from devlint.device import Device, Kind, Role
from devlint.flow.core.interpreter import Component, Frame, Interpreter
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.values import Tensor, Value, as_tensor
from devlint.sites.base import Operand, Scope, Step
from devlint.sites.placement import Attribute


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


class Attributes(Component):
    """The plain tensor attributes of a file's modules."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._known: dict[tuple[str, str], _Kept] = {}

    def declare(self, frame: Frame, node: ast.expr, value: Tensor, name: str, kind: str) -> None:
        """``__init__`` keeps ``value`` under ``name`` without registering it."""
        owner = frame.owner.name if frame.owner else ""
        kept = _Kept(owner, name, frame.operand(node, value), scope_of(frame), kind)
        kept.open = bool(frame.owner and frame.owner.is_open)
        kept.chained = kept.open and bool(frame.info and _calls_base(frame.info.nodes))
        self._known.setdefault((owner, name), kept)

    def names(self, owner: str) -> list[str]:
        """The plain tensor attributes of a class."""
        return [name for known, name in self._known if known == owner]

    @property
    def any(self) -> bool:
        """Whether there are any."""
        return bool(self._known)

    def use(self, value: Value, node: ast.AST, label: str) -> None:
        """The attribute meets a tensor that lives where the module does.

        What was moved under some condition says nothing: they may meet only where it was not, on the CPU.
        """
        kept = self._find(value)
        place = as_tensor(value).device
        if kept is not None and (place.kind is not Kind.CHOICE or place == kept.value.device):
            kept.uses.setdefault(node, Step(node, label))

    def move(self, frame: Frame, value: Value, node: ast.AST, label: str, kept_again: bool, place: Device) -> None:
        """The attribute is copied to where the inputs are, at ``place``."""
        kept = self._find(value)
        if kept is not None:
            if not frame.interpreter.muted:
                kept.copies.setdefault(node, frame.info.name if frame.info else "")
            kept.uses.setdefault(node, Step(node, label))
            kept.moved = True
            kept.kept = kept.kept or kept_again
            given = place.kind is Kind.SYMBOL and place.role is Role.INPUT
            kept.follows = kept.follows or (kept.chained and kept_again and given)

    def sites(self) -> Iterator[Attribute]:
        """A site for each attribute that a method uses with its inputs."""
        for kept in self._known.values():
            if kept.uses:
                uses = tuple(sorted(kept.uses.values(), key=lambda step: getattr(step.node, "lineno", 0)))
                yield Attribute(
                    kept.value.node, kept.scope, kept.owner, kept.name, kept.value, uses, kept.moved, kept.kept,
                    kept.kind, open=kept.open, follows=kept.follows, copies=tuple(kept.copies.items()),
                )  # fmt: skip

    def _find(self, value: Value) -> _Kept | None:
        origin = value.attribute_of if isinstance(value, Tensor) else None
        return None if origin is None else self._known.get(origin)


def _calls_base(inside: list[ast.AST]) -> bool:
    """Whether a constructor calls that of its base."""
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "__init__"
        and isinstance(node.func.value, ast.Call)
        and isinstance(node.func.value.func, ast.Name)
        and node.func.value.func.id == "super"
        for node in inside
    )


def lives_with_inputs(value: Value) -> bool:
    """Whether a tensor is where the caller put the module or its inputs."""
    place = as_tensor(value).device
    return place.kind is Kind.SYMBOL and place.role in (Role.INPUT, Role.PLACE)
