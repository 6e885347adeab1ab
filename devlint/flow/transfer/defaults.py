"""Defaults of a process: the device on which tensors are made if nobody asks for another, and what draws numbers."""

from __future__ import annotations

from devlint import device
from devlint.device import Device, Kind
from devlint.flow.catalog.concepts import CPU_GENERATORS, GENERATOR
from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.domain.heap import Field
from devlint.flow.domain.objects import Stateful
from devlint.flow.domain.tensors import DeviceValue
from devlint.flow.domain.values import Named, Value

_PROCESS = 0
"""What all code has in common, as an object."""
_DEFAULT: Field[Value] = Field("default device", Value)


def set_default(frame: Frame, call: Call, place: Device) -> None:
    """The default device is ``place`` from here on."""
    _DEFAULT.put(frame.state.heap, _PROCESS, DeviceValue(place, call.node))


def default_place(frame: Frame) -> Device | None:
    """Where tensors and modules are made of which nobody says where; ``None`` where that cannot be told."""
    return None if frame.interpreter.default_changed else frame.default_device or device.IMPLIED_CPU


def left(frame: Frame) -> object:
    """The default device that the top level of a file leaves to its functions."""
    return _DEFAULT.of(frame.state.heap, _PROCESS)


def held(frame: Frame) -> object:
    """The default device, if the code has set one."""
    return _DEFAULT.of(frame.state.heap, _PROCESS) or frame.interpreter.default_device


def on_host(frame: Frame) -> bool:
    """Whether nothing says that the default device is another one than the CPU."""
    default = held(frame)
    return not isinstance(default, DeviceValue) or default.device.kind is Kind.CPU


def generator_place(given: Value) -> Device | None:
    """Where a generator is."""
    if isinstance(given, Named):
        return device.CPU if given.path in CPU_GENERATORS else None
    if not isinstance(given, Stateful) or given.path != GENERATOR or not given.tensors:
        return None
    (place,) = given.tensors
    return place.device if isinstance(place, DeviceValue) and place.device.known else None
