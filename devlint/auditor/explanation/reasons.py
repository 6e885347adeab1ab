"""Why a tensor or a module that took part in a mismatch was where it was."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import torch
from torch import nn

from devlint.auditor.explanation.operands import Operand
from devlint.auditor.explanation.provenance import (
    Reason,
    bindings,
    dropped_move,
    is_parameter,
    made_by,
    of_attribute,
    of_binding,
    of_name,
)
from devlint.auditor.explanation.trail import Stop, Trail
from devlint.auditor.introspection.tensors import fields, home, leaves, owner_of, path_of, walk
from devlint.auditor.introspection.unregistered import Held, unregistered
from devlint.record import Frame


class Reasons:
    """Finds out why something was where it was, from the modules and the code on the way to the mismatch."""

    def __init__(self, trail: Trail) -> None:
        self._trail = trail

    def of(self, operand: Operand) -> Reason:
        """The reason for a parameter of a module, for a tensor, or for a result that is gone."""
        if operand.module is not None:
            return self._module(operand.module, operand.device)
        if isinstance(operand.value, torch.Tensor):
            return self._tensor(operand.value, operand.device)
        if operand.made and operand.node is not None:
            stop = self._trail.scenes[0]
            return Reason(made_by(operand.node, stop.frame, operand.device), stop.place(operand.node))
        return Reason()

    def holding(self, module: nn.Module) -> Iterator[tuple[Held, str]]:
        """What holds an unregistered module, and the rest of its path in that."""
        for held in self._held:
            if isinstance(held.value, nn.Module):
                rest = path_of(held.value, module)
                if rest is not None:
                    yield held, f".{rest}" if rest else ""

    @cached_property
    def _held(self) -> list[Held]:
        """All that any of the modules holds, as seen from the outermost that does."""
        found: list[Held] = []
        seen: set[int] = set()
        for root in self._trail.modules:
            for held in unregistered(root):
                if id(held.value) not in seen:
                    seen.add(id(held.value))
                    found.append(held)
        return found

    def _module(self, module: nn.Module, device: str) -> Reason:
        for held, _ in self.holding(module):
            return _plain(held)
        root = self._trail.root
        if root is not None and root is not module and path_of(root, module) is not None and home(root) != device:
            return self._late(root, module)
        whole = root if root is not None and path_of(root, module) is not None else module
        where = "the CPU" if device == "cpu" else device
        for stop in self._trail.scenes:
            name = stop.holds(whole) or _attribute_of(stop.this, whole)
            frame = _assignment(name, stop) if name not in ("", "self") else None
            if frame is not None and home(whole) == device == "cpu":
                return Reason(f"all of `{name}` is on {where}: it was never moved, or moved back", frame)
            if frame is not None:
                return Reason("", frame)
        return Reason(f"all of `{type(whole).__name__}` is on {where}" if home(whole) == device else "")

    def _late(self, root: nn.Module, module: nn.Module) -> Reason:
        """A registered module which is not where the rest is."""
        path = path_of(root, module) or ""
        parent, _, name = path.rpartition(".")
        owner = next((found for at, found in walk(root) if at == parent), root)
        frame, _ = of_attribute(owner, name)
        if frame is not None and not frame.function.endswith("__init__"):
            return Reason(f"`self.{name}` is assigned in `{frame.function}`, after the model had been moved", frame)
        return Reason("", frame)

    def _tensor(self, tensor: torch.Tensor, device: str) -> Reason:
        for held in self._held:
            if held.value is tensor:
                return _plain(held)
        for root in self._trail.modules[:1]:
            registered = owner_of(root, tensor)
            if registered is not None:
                return self._module(registered, device)
        for stop in self._trail.scenes:
            reason = self._variable(tensor, stop, device)
            if reason.frame is not None:
                return reason
        return Reason()

    def _variable(self, tensor: torch.Tensor, stop: Stop, device: str) -> Reason:
        """What the function of a frame says of the variable in which it has the tensor."""
        name, function = stop.holds(tensor), stop.function
        if name:
            if is_parameter(name, function) and not any(bindings(function, name)):
                return dropped_move(name, stop, device) or Reason()
            return of_name(name, stop, device)
        this = stop.this
        attribute = _attribute_of(this, tensor)
        if attribute:
            return _of_attribute(this, attribute.removeprefix("self."), stop, device)
        for name, value in list(stop.frame.f_locals.items()):
            if isinstance(value, (nn.Module, torch.Tensor)) or value is this:
                continue
            path = next((path for path, found in leaves(value, name, depth=2) if found is tensor), "")
            if path and not is_parameter(name, function):
                # what was assigned to the element, else what was to the container
                assigned = list(bindings(function, path))
                return of_binding(path, assigned[-1], stop, device) if assigned else of_name(name, stop, device)
        return Reason()


def _of_attribute(this: object, name: str, stop: Stop, device: str) -> Reason:
    """An attribute of an object that is no module, such as a trainer."""
    frame, value = of_attribute(this, name)
    return Reason(made_by(value, stop.frame, device) if value is not None else "", frame)


def _assignment(name: str, stop: Stop) -> Frame | None:
    """Where a variable, or an attribute of ``self``, was assigned."""
    if name.startswith("self."):
        return of_attribute(stop.this, name.removeprefix("self."))[0]
    found = list(bindings(stop.function, name))
    before = [binding for binding in found if getattr(binding.node, "lineno", 0) <= stop.line] or found
    return stop.place(before[0].node) if before else None


def _plain(held: Held) -> Reason:
    frame, _ = of_attribute(held.owner, held.name)
    if held.container:
        what = "modules" if isinstance(held.value, nn.Module) else "tensors"
        why = f"is a plain {held.container}, so `.to()` did not move the {what} in it"
    elif isinstance(held.value, nn.Module):
        why = "was set past `nn.Module`, so `.to()` did not move it"
    else:
        why = "is a plain attribute, not a buffer, so `.to()` did not move it"
    return Reason(f"`{held.name}` {why}", frame, held)


def _attribute_of(this: object, value: object) -> str:
    """``self.x`` if an object that is no module holds the value in its attribute ``x``; of a module the same."""
    own = fields(this)
    held = {**own, **(own.get("_modules") or {})}
    return next((f"self.{name}" for name, found in held.items() if found is value), "")
