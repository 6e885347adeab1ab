"""Devices that the code names: one that it makes, the default one, those that there are."""

from __future__ import annotations

import ast

from devlint import device
from devlint.device import Kind
from devlint.flow.catalog.concepts import DEVICE
from devlint.flow.core import events
from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.registry import MODELS
from devlint.flow.domain.objects import Stateful
from devlint.flow.domain.tensors import DeviceValue, named_place
from devlint.flow.domain.values import UNKNOWN, Const, Flag, Named, Value, is_none
from devlint.flow.transfer import api_use
from devlint.flow.transfer.defaults import set_default


def _device(frame: Frame, call: Call, path: str) -> Value:
    given = call.argument(0, "device") or call.argument(0, "type")
    node = call.argument_node(0, "device") or call.argument_node(0, "type")
    if given is None or node is None:
        return UNKNOWN
    api_use.device(frame, node, DEVICE, given, call)
    for observer in events.heard(frame, "on_device_use"):
        observer.on_device_use(frame, call.node, given, False)
    place = named_place(given)
    index = call.argument(1, "index")
    text = given.value if isinstance(given, Const) and isinstance(node, ast.Constant) else None
    if index is not None and text is not None and place is not None and place.kind is Kind.ACCELERATOR:
        for observer in events.heard(frame, "on_device_index"):
            observer.on_device_index(frame, call.node, index, f'torch.device("{text}", {getattr(index, "value", "")})')
        number = index.value if isinstance(index, Const) else None
        if isinstance(number, int):
            return DeviceValue(device.accelerator(place.type, number), call.node, form="made")
        key = f"{text}@{frame.at(call.node)}"
        return DeviceValue(device.symbol(key, frame.interpreter.text(call.node)), call.node, form="made")
    if place is None:
        place = device.symbol(f"device@{frame.at(call.node)}", frame.interpreter.text(call.node))
    return DeviceValue(place, call.node, form="made")


def _set_default(frame: Frame, call: Call, path: str) -> Value:
    node = call.argument_node(0, "device")
    if node is not None:
        given = call.argument(0, "device")
        api_use.device(frame, node, "set_default_device", given, call)
        set_default(
            frame, call, device.CPU if given is None or is_none(given) else named_place(given) or device.UNKNOWN
        )
    return UNKNOWN


def _set_default_type(frame: Frame, call: Call, path: str) -> Value:
    """Tensors are made where a type lives."""
    given = call.argument(0, "t")
    name = given.value if isinstance(given, Const) else given.path if isinstance(given, Named) else ""
    if isinstance(name, str) and name.startswith("torch."):
        set_default(frame, call, device.accelerator("cuda") if name.startswith("torch.cuda.") else device.CPU)
    return UNKNOWN


def _autocast(frame: Frame, call: Call, path: str) -> Value:
    node = call.argument_node(0, "device_type")
    if node is not None:
        api_use.device(frame, node, "autocast", call.argument(0, "device_type"), call)
    return UNKNOWN


def _available(frame: Frame, call: Call, path: str) -> Value:
    flag = frame.interpreter.condition(frame, call.node)
    return flag if isinstance(flag, Flag) else UNKNOWN


def _accelerator(frame: Frame, call: Call, path: str) -> Value:
    return DeviceValue(device.symbol("current accelerator", frame.interpreter.text(call.node)), call.node)


def _cuda_scope(frame: Frame, call: Call, path: str) -> Value:
    return Stateful(path, node=call.node)


MODELS.register(
    {
        "torch.device": _device,
        "torch.set_default_device": _set_default,
        "torch.set_default_tensor_type": _set_default_type,
        "torch.amp.autocast": _autocast,
        "torch.cuda.is_available": _available,
        "torch.cuda.device_count": _available,
        "torch.accelerator.is_available": _available,
        "torch.accelerator.current_accelerator": _accelerator,
        "torch.cuda.device": _cuda_scope,
    }
)
