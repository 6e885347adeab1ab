"""Why a run died of tensors on different devices: who was where, and what put them there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from types import TracebackType
from typing import NamedTuple

import torch
from torch import nn

from devlint.auditor.explanation.code import running as running_code
from devlint.auditor.explanation.lookup import look_up
from devlint.auditor.explanation.messages import argument_in, demand, devices_in
from devlint.auditor.explanation.operands import Operand, Role, operands, rest
from devlint.auditor.explanation.origin import chain, is_own_mismatch, saying
from devlint.auditor.explanation.provenance import Reason
from devlint.auditor.explanation.reasons import Reasons
from devlint.auditor.explanation.trail import Stop, Trail, follow, is_wrapper
from devlint.auditor.frames import Frames
from devlint.auditor.introspection.tensors import (
    all_tensors,
    describe,
    device_of,
    home,
    is_placed,
    is_scalar,
    leaves,
    own_tensors,
    owner_of,
    path_of,
)
from devlint.auditor.introspection.unregistered import Held
from devlint.flow.syntax.names import spelled
from devlint.record import Mismatch, Party

_UNKNOWN = Reason()
_PARTIES = 8
_LONGEST = 60
_CALLS = ("_wrapped_call_impl", "_call_impl", "inner")
"""The methods of modules which do not have the inputs by name."""


class Explanation(NamedTuple):
    """A mismatch, and what took part in it although the module that holds it never registered it."""

    mismatch: Mismatch
    held: tuple[tuple[Held, str], ...] = ()
    """Each with the device of the module that holds it."""


def examine(error: BaseException, traceback: TracebackType | None, frames: Frames) -> Explanation | None:
    """The mismatch that an exception tells of, explained; ``None`` if it tells of something else.

    Nothing of the script is run: only names, attributes and elements are looked up.
    """
    cause = next((one for one in chain(error) if is_own_mismatch(one, frames)), None)
    if cause is None:
        return None
    text = saying(str(cause)) or " ".join(str(cause).split())
    return _Examination(text, follow(traceback if cause is error else cause.__traceback__, frames)).result()


class _Examination:
    """Collects who took part, finds out who was out of place, and asks why.

    ``text`` is the line of the message that speaks of devices.
    """

    def __init__(self, text: str, trail: Trail) -> None:
        self.text = text
        self.trail = trail
        self.reasons = Reasons(trail)
        self.demand = demand(text)
        self.node: dict[Stop, ast.AST | None] = {}

    def result(self) -> Explanation:
        path, kind = self._module()
        candidates = self._candidates()
        strays = self._stray_devices(candidates)
        reasons = [(one, self.reasons.of(one)) for one in candidates if one.device in strays]
        held = [reason.held for _, reason in reasons if reason.held is not None]
        parties = [_party(candidate, candidate.why, reason) for candidate, reason in reasons]
        parties = [*parties, *(_party(one) for one in candidates if one.device not in strays)][:_PARTIES]
        if not parties:  # the message alone has to do
            blamed = argument_in(self.text)
            named = enumerate(devices_in(self.text))
            parties = [Party(text="" if index else blamed, device=name) for index, name in named]
        project = self.trail.project
        inner = self.trail.scenes[0] if self.trail.scenes else None
        mismatch = Mismatch(
            frame=project.place() if project else None,
            via=inner.place() if inner is not None and inner is not project else None,
            module=path,
            module_class=kind,
            parties=tuple(parties),
            error=self.text,
        )
        root = self.trail.root
        around = home(root) if root is not None else ""  # for an owner without parameters of its own
        return Explanation(mismatch, tuple((one, home(one.owner) or around) for one in held))

    def _module(self) -> tuple[str, str]:
        """The path of the running module from the outermost one, and its class."""
        found, root = self.trail.running, self.trail.root
        if found is None or root is None:
            return "", ""
        module = found[0]
        path = path_of(root, module)
        if path is None:
            path = next((held.text + rest for held, rest in self.reasons.holding(module)), "")
        return path, type(module).__name__

    def _candidates(self) -> list[Operand]:
        """Those who took part: by the module that ran, or else by the expression in the code."""
        if self.demand:
            return list(self._alone())
        named = set(devices_in(self.text))
        for find in (self._wrapped, self._optimizer, self._inside_module, self._expression):
            found = [_indexed(candidate, named) for candidate in _unique(find())]
            if len({candidate.device for candidate in found}) > 1:
                return _representative(found, self._stray_devices(found))
        return []

    def _stray_devices(self, candidates: list[Operand]) -> set[str]:
        """The devices of those who are out of place: the CPU, else whatever is not where the parameters are."""
        devices = [candidate.device for candidate in candidates]
        if self.demand:
            return set(devices) - {"cpu"}
        if "cpu" in devices:
            return {"cpu"} if len(set(devices)) > 1 else set()
        own = [candidate.device for candidate in candidates if candidate.role == "parameter"]
        expected = (own or devices or [""])[0]
        return set(devices) - {expected}

    def _wrapped(self) -> Iterator[Operand]:
        """DataParallel and DistributedDataParallel, which want the module on their first device."""
        found = self.trail.find(nn.Module)
        if found is None or not is_wrapper(found[0]) or "device_ids" not in self.text:
            return
        wrapper, stop = found
        inner = stop.frame.f_locals.get("module") or getattr(wrapper, "module", None)
        named = [name for name in devices_in(self.text) if name != "cpu"]
        expected = named[0] if named else "cuda:0"
        expected = expected if ":" in expected else f"{expected}:0"
        if isinstance(inner, nn.Module):
            why = f"`{type(wrapper).__name__}` wants the module on {expected} before it wraps it"
            for name, tensor in _placed(inner):
                if device_of(tensor) != expected:
                    yield Operand(name, device_of(tensor), tensor, "parameter", inner, why)
                    break
            yield Operand("device_ids[0]", expected)

    def _optimizer(self) -> Iterator[Operand]:
        """State of an optimizer that is not where its parameter is."""
        found = self.trail.find(torch.optim.Optimizer)
        if found is None:
            return
        kind = type(found[0]).__name__
        for parameter, state in list(found[0].state.items()):
            for name, value in leaves(state):
                if isinstance(parameter, torch.Tensor) and not is_scalar(value) and value.device != parameter.device:
                    why = f"`{kind}` got this state while the parameter was there, which has moved since"
                    yield Operand(f"state of {kind}{name}", device_of(value), value, why=why)
                    yield Operand("parameter", device_of(parameter), parameter, "parameter")
                    return

    def _alone(self) -> Iterator[Operand]:
        """The one tensor that had to be somewhere else, such as on the CPU for NumPy."""
        blamed = argument_in(self.text)
        for stop in reversed(self.trail.stops) if blamed else ():
            tensor = stop.frame.f_locals.get(blamed)
            if stop.internal and isinstance(tensor, torch.Tensor):
                yield Operand(self._spelled(tensor) or blamed, device_of(tensor), tensor, "input", why=self.demand)
                return
        for stop in self.trail.scenes:
            for operand in self._operands(stop):
                if operand.device != "cpu" and isinstance(operand.value, torch.Tensor):
                    yield replace(self._in_role(operand), why=self.demand)
                    return

    def _inside_module(self) -> Iterator[Operand]:
        """What a module of torch or a library works on: what it registers itself, and its inputs."""
        found = self.trail.running
        if found is None or found[1].project:
            return
        module, _ = found
        stop = next(
            stop for stop in self.trail.stops if stop.this is module and stop.frame.f_code.co_name not in _CALLS
        )
        name = self._module()[0] or self._spelled(module) or type(module).__name__
        for part, tensor in own_tensors(module):
            if is_placed(tensor):
                role: Role = "parameter" if isinstance(tensor, nn.Parameter) else "buffer"
                yield Operand(f"{name}.{part}" if name else part, device_of(tensor), tensor, role, module)
        for position, (text, value) in enumerate(self._given(module, stop)):
            for path, tensor in leaves(value, text):
                if is_placed(tensor):
                    shown = self._spelled(tensor) or self._argument(module, position) or path
                    yield Operand(shown, device_of(tensor), tensor, "input")

    def _given(self, module: nn.Module, stop: Stop) -> list[tuple[str, object]]:
        """What a method of a module was called with, by name; its own variables may hold something else by now."""
        calls = (each for each in self.trail.stops if each.this is module and each.frame.f_code.co_name in _CALLS)
        call = next((each.frame.f_locals for each in calls if "args" in each.frame.f_locals), None)
        if call is None or stop.frame.f_code.co_name != "forward":
            return _arguments(stop)
        code, args, kwargs = stop.frame.f_code, call["args"], call.get("kwargs") or {}
        names = code.co_varnames[1 : code.co_argcount]
        return [*zip(names, args, strict=False), *kwargs.items()]

    def _expression(self) -> Iterator[Operand]:
        """The operands of the expression that failed, in the innermost code that is not torch's."""
        for stop in self.trail.scenes:
            found = self._operands(stop)
            direct = [operand for operand in found if operand.direct]
            chosen = direct if len({operand.device for operand in direct}) > 1 else found
            devices = {operand.device for operand in chosen}
            if len(devices) == 1 and stop is self.trail.scenes[0]:
                other = self._other(stop, devices.pop())
                if other is not None:
                    yield from (*map(self._in_role, direct or found), other)
                    return
            if len(devices) > 1:
                yield from map(self._in_role, chosen)
                return

    def _other(self, stop: Stop, known: str) -> Operand | None:
        """The one operand of which nothing is known, where the others are on one of two devices that torch names."""
        node = self._node(stop)
        odd = rest(node, stop.frame) if node is not None else None
        devices = devices_in(self.text)
        left = [name for name in devices if name != known and f"{known}:" not in name and f"{name}:" not in known]
        if odd is None or len(devices) != 2 or len(left) != 1:
            return None
        return Operand(spelled(odd), left[0])

    def _in_role(self, operand: Operand) -> Operand:
        """An operand of an expression as what it is to the module that ran; of a module, the first of its tensors."""
        value = operand.value
        if isinstance(value, nn.Module):
            name, tensor = next(_placed(value))
            return replace(operand, text=f"{operand.text}.{name}", value=tensor, role="parameter", module=value)
        if value is not None and any(owner_of(module, value) for module in self.trail.modules[:1]):
            return replace(operand, role="parameter" if isinstance(value, nn.Parameter) else "buffer")
        return operand

    def _operands(self, stop: Stop) -> list[Operand]:
        node = self._node(stop)
        return operands(node, stop.frame) if node is not None else []

    def _node(self, stop: Stop) -> ast.AST | None:
        if stop not in self.node:
            self.node[stop] = running_code(stop.frame.f_code, stop.instruction)
        return self.node[stop]

    def _spelled(self, value: object) -> str:
        """How the project's code names a tensor or a module, else how a library's does; empty if neither does."""
        stops = sorted(self.trail.scenes, key=lambda stop: not stop.project)
        operands = (operand for stop in stops for operand in self._operands(stop))
        return next((operand.text for operand in operands if operand.value is value), "")

    def _argument(self, module: nn.Module, position: int) -> str:
        """The text of an argument in the call of a module that stands in the code."""
        for stop in self.trail.scenes:
            node = self._node(stop)
            given = node.args[position : position + 1] if isinstance(node, ast.Call) else []
            if isinstance(node, ast.Call) and given and look_up(node.func, stop.frame) is module:
                text = ast.unparse(given[0])
                return text if len(text) <= _LONGEST else ""
        return ""


def _placed(module: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    return ((path, tensor) for path, tensor in all_tensors(module) if is_placed(tensor))


def _party(operand: Operand, why: str = "", reason: Reason = _UNKNOWN) -> Party:
    value = operand.value
    return Party(
        text=operand.text,
        device=operand.device,
        example=describe(value) if isinstance(value, torch.Tensor) else "",
        role="attribute" if reason.held is not None and reason.held.value is value else operand.role,
        why="; ".join(filter(None, (why, reason.why))),
        origin=reason.frame,
    )


def _arguments(stop: Stop) -> list[tuple[str, object]]:
    code, values = stop.frame.f_code, stop.frame.f_locals
    names = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    return [(name, values[name]) for name in names if name in values]


def _unique(candidates: Iterator[Operand]) -> list[Operand]:
    found: list[Operand] = []
    for candidate in candidates:
        named = any((candidate.text, candidate.device) == (other.text, other.device) for other in found)
        if not named and not any(candidate.value is other.value for other in found if other.value is not None):
            found.append(candidate)
    return found


def _indexed(candidate: Operand, named: set[str]) -> Operand:
    """With the index of a device that the code names without one, as the message has it."""
    if ":" in candidate.device or candidate.device == "cpu":
        return candidate
    full = next((name for name in sorted(named) if name.startswith(candidate.device + ":")), "cuda:0")
    return replace(candidate, device=full)


def _representative(candidates: list[Operand], strays: set[str]) -> list[Operand]:
    """One parameter of each module and device is enough; strays first."""
    found: dict[tuple[int, str], Operand] = {}
    for candidate in candidates:
        key = id(candidate if candidate.module is None else candidate.module), candidate.device
        found.setdefault(key, candidate)
    return sorted(found.values(), key=lambda candidate: candidate.device not in strays)
