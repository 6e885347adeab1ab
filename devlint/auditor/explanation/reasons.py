"""Why a tensor or a module that took part in a mismatch was where it was."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import nn

from devlint.auditor.explanation.code import frame_at
from devlint.auditor.explanation.operands import Operand
from devlint.auditor.explanation.provenance import (
    Provenance,
    bindings,
    dropped_move,
    holds,
    is_parameter,
    made_by,
    of_attribute,
    of_binding,
    of_name,
)
from devlint.auditor.explanation.trail import Stop, Trail, owner_of, path_of
from devlint.auditor.introspection.tensors import fields, home, leaves, walk
from devlint.auditor.introspection.unregistered import Held, unregistered
from devlint.record import Frame


@dataclass(frozen=True, slots=True)
class Reason:
    """Why, as far as it is known, where that was decided, and who holds it without having registered it."""

    why: str = ""
    frame: Frame | None = None
    held: Held | None = None


class Reasons:
    """Finds out why something was where it was, from the modules and the code on the way to the mismatch."""

    def __init__(self, trail: Trail) -> None:
        self._trail = trail

    def of(self, tensor: torch.Tensor | None, module: nn.Module | None, operand: Operand | None, device: str) -> Reason:
        """The reason for a tensor, for a parameter of ``module``, or for what an operand was."""
        if module is not None:
            return self._module(module, operand, device)
        if tensor is not None:
            return self._tensor(tensor, operand, device)
        if operand is not None and operand.made:
            stop = self._trail.scenes[0]
            return Reason(made_by(operand.node, stop.frame, device), stop.scene.place(operand.node))
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

    def _module(self, module: nn.Module, operand: Operand | None, device: str) -> Reason:
        for held, _ in self.holding(module):
            return _plain(held)
        root = self._trail.root
        if root is not None and root is not module and path_of(root, module) is not None and home(root) != device:
            return self._late(root, module)
        whole = root if root is not None and path_of(root, module) is not None else module
        where = _words(device)
        for stop in self._trail.scenes:
            name = holds(stop.frame, whole) or _attribute_of(stop.this, whole)
            if not name:
                continue
            origin = self._assignment(name, stop)
            if name == "self" or origin.frame is None:
                continue
            if home(whole) == device == "cpu":
                return Reason(f"all of `{name}` is on {where}: it was never moved, or moved back", origin.frame)
            return Reason("", origin.frame)
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

    def _tensor(self, tensor: torch.Tensor, operand: Operand | None, device: str) -> Reason:
        for held in self._held:
            if held.value is tensor:
                return _plain(held)
        for root in self._trail.modules[:1]:
            registered = owner_of(root, tensor)
            if registered is not None:
                return self._module(registered[1], operand, device)
        for stop in self._trail.scenes:
            reason = self._variable(tensor, stop, device)
            if reason.frame is not None:
                return reason
        return Reason()

    def _variable(self, tensor: torch.Tensor, stop: Stop, device: str) -> Reason:
        """What the function of a frame says of the variable in which it has the tensor."""
        scene = stop.scene
        name = holds(stop.frame, tensor)
        if name:
            if not is_parameter(name, scene.function):
                return _reason(of_name(name, scene, device))
            assigned = list(bindings(scene.function, name)) if scene.function is not None else []
            return _reason(
                of_name(name, scene, device) if assigned else dropped_move(name, scene, device) or Provenance()
            )
        this = stop.this
        attribute = _attribute_of(this, tensor)
        if attribute:
            return self._of_attribute(this, attribute.removeprefix("self."), stop, device)
        for name, value in list(stop.frame.f_locals.items()):
            if isinstance(value, (nn.Module, torch.Tensor)) or value is this:
                continue
            held = any(found is tensor for _, found in leaves(value, depth=2))
            if held and not is_parameter(name, scene.function):
                return self._element(name, tensor, value, stop, device)
        return Reason()

    def _element(self, name: str, tensor: torch.Tensor, value: object, stop: Stop, device: str) -> Reason:
        """A tensor in a container: what was assigned to the element, else what was to the container."""
        scene = stop.scene
        path = next(path for path, found in leaves(value, name, depth=2) if found is tensor)
        if scene.function is not None:
            found = list(bindings(scene.function, path))
            if found:
                return _reason(of_binding(path, found[-1], scene, device))
        return _reason(of_name(name, scene, device))

    def _of_attribute(self, this: object, name: str, stop: Stop, device: str) -> Reason:
        """An attribute of an object that is no module, such as a trainer."""
        frame, text = of_attribute(this, name)
        if frame is None:
            return Reason()
        try:
            value: ast.AST = ast.parse(text, mode="eval").body
        except SyntaxError:
            return Reason("", frame)
        return Reason(made_by(value, stop.frame, device), frame)

    def _assignment(self, name: str, stop: Stop) -> Provenance:
        """Where a variable, or an attribute of ``self``, was assigned."""
        if name.startswith("self."):
            frame, _ = of_attribute(stop.this, name.removeprefix("self."))
            return Provenance(frame=frame)
        function = stop.scene.function
        found = list(bindings(function, name)) if function is not None else []
        before = [binding for binding in found if getattr(binding.node, "lineno", 0) <= stop.line] or found
        return Provenance(frame=frame_at(stop.scene.file, before[0].node, _qualified(stop))) if before else Provenance()


def _plain(held: Held) -> Reason:
    frame, _ = of_attribute(held.owner, held.name)
    if held.container:
        what = "modules" if isinstance(held.value, nn.Module) else "tensors"
        return Reason(
            f"`{held.name}` is a plain {held.container}, so `.to()` did not move the {what} in it", frame, held
        )
    if isinstance(held.value, nn.Module):
        return Reason(f"`{held.name}` was set past `nn.Module`, so `.to()` did not move it", frame, held)
    return Reason(f"`{held.name}` is a plain attribute, not a buffer, so `.to()` did not move it", frame, held)


def _reason(origin: Provenance) -> Reason:
    return Reason(origin.why, origin.frame)


def _attribute_of(this: object, value: object) -> str:
    """``self.x`` if an object that is no module holds the value in its attribute ``x``; of a module the same."""
    own = fields(this)
    for name, found in {**own, **(own.get("_modules") or {})}.items():
        if found is value:
            return f"self.{name}"
    return ""


def _words(device: str) -> str:
    return "the CPU" if device == "cpu" else device


def _qualified(stop: Stop) -> str:
    code = stop.frame.f_code
    return getattr(code, "co_qualname", code.co_name)
