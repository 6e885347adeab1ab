"""The scope of a site: what surrounds the code that runs, and the device expressions at hand there."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection
from itertools import islice

from devlint.device import Device, Kind, Role, Topic
from devlint.flow.core.interpreter import Frame
from devlint.flow.domain.tensors import DeviceValue
from devlint.flow.domain.values import Opaque, Value
from devlint.flow.program.def_use import for_collectives
from devlint.flow.program.module_classes import has_state
from devlint.flow.syntax import names
from devlint.immutable import replace
from devlint.sites.base import Scope

_MAY_BE_DEVICES = frozenset({DeviceValue, Opaque})
_MANY_DEVICES = 32
_MANY_NAMES = 200
_CLASS_BOUND = frozenset({"classmethod", "staticmethod"})
"""What is called of a class, and has no object."""
_OF_DEVICES = re.compile(r"accelerat|cuda|gpu|device|mps|xpu", re.IGNORECASE)
"""What the code of the conditions says by which a program chooses where it runs, and not where one thing is kept."""


def at_hand(env: dict[str, Value]) -> Collection[tuple[str, Value]]:
    """The names of a scope with their values; of very many the first and the newest."""
    if len(env) <= 2 * _MANY_NAMES:
        return env.items()
    return [*islice(env.items(), _MANY_NAMES), *islice(reversed(env.items()), _MANY_NAMES)]


def is_device(value: Value) -> bool:
    """Whether a name that holds the value is one to say a device by."""
    if isinstance(value, DeviceValue):
        return value.device.kind is Kind.SYMBOL or (value.device.kind is Kind.CHOICE and _chosen(value.device))
    # a rank or an index is a device only as an argument
    if not isinstance(value, Opaque) or value.hint != "device" or value.optional:
        return False
    return "dev" in value.text.lower()


def _chosen(place: Device) -> bool:
    """Whether a choice is not one for the CPU that hangs on something else than what there is."""
    return any(_OF_DEVICES.search(guard.spelled) for guard in place.guards()) or all(
        leaf.kind is not Kind.CPU for leaf in place.leaves()
    )


def scope_of(frame: Frame) -> Scope:
    """The surroundings of the code that runs now."""
    loop = frame.loops[-1] if frame.loops else None
    return Scope(
        function=frame.info.name if frame.info else "",
        owner=frame.owner.name if frame.owner else "",
        module=frame.after_init,
        loop=loop.node if loop else None,
        step=any(loop.step and not loop.encloses for loop in frame.loops),
        guarded=frame.state.accelerated,
        by_name=frame.state.accelerated and frame.state.by_name,
        handler=frame.handler or frame.tried,
        test=frame.test or frame.interpreter.test,
        device_aware=bool(frame.info and frame.info.device_aware),
        stateless=frame.after_init and frame.owner is not None and has_state(frame.owner) is False,
        # nobody reads what is found in silence
        devices=() if frame.interpreter.muted else devices(frame),
        required=frame.state.required,
        counted=frame.state.asked(Topic.COUNT),
        sometimes=_sometimes(frame),
        # what is imported needs CUDA, or what has been asked for does
        bound=frame.state.affirmed(Topic.BACKEND) or frame.interpreter.index.bound,
        dedicated=frame.interpreter.index.dedicated or bool(frame.info and frame.info.dedicated),
    )


def _sometimes(frame: Frame) -> bool:
    """Whether only some steps come here, or in no step, some rounds of the innermost loop."""
    if not frame.loops:
        return False
    step = next((loop for loop in reversed(frame.loops) if loop.step and not loop.encloses), frame.loops[-1])
    return frame.chances > step.chances or frame.loops[-1].skips


def scope_of_placement(frame: Frame, node: ast.AST) -> Scope:
    """The surroundings of what places a tensor, perhaps for NCCL, which takes tensors of CUDA alone."""
    scope = scope_of(frame)
    collected = id(node) in for_collectives(frame.code) and not frame.interpreter.index.mentions("gloo")
    return replace(scope, bound=True) if collected else scope


def in_shim(frame: Frame) -> bool:
    """Whether the code that runs is there for the sake of another version of torch."""
    outer = (frame.info, frame.owner)
    return frame.shim or any(info is not None and info.shim for info in outer) or frame.state.asked(Topic.VERSION)


def devices(frame: Frame) -> tuple[str, ...]:
    """The device expressions at hand, as many as anybody would choose from: names first, then what ``self`` has."""
    named = at_hand(frame.state.env)
    found = [name for name, value in named if type(value) in _MAY_BE_DEVICES and is_device(value)]
    known = set(found)
    found += [name for name in frame.interpreter.global_devices() if name not in known]
    found.sort(key=lambda name: (name != "device", "device" not in name))
    if frame.owner is not None and not _CLASS_BOUND.intersection(frame.info.decorators if frame.info else ()):
        found += [f"self.{attr}" for attr in frame.interpreter.device_attributes(frame.owner)]
    found += [
        f"{name}.device"
        for name, value in named
        # a local of unknown origin may be anywhere, as a batch is, or not be bound yet
        if type(value) is Opaque and value.hint == "tensor" and value.role is Role.INPUT
        if isinstance(value.node, ast.arg) and value.node.arg == value.text == name and not value.optional
    ]
    if frame.loops:
        loops = [loop.node for loop in frame.loops if isinstance(loop.node, ast.For)]
        # what is not taken from a list that the code spells out is another choice
        spelled = names.inside(*(loop.target for loop in loops if isinstance(loop.iter, (ast.Tuple, ast.List))))
        found = [name for name in found if name not in spelled]
    return tuple(found[:_MANY_DEVICES])
