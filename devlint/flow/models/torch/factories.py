"""Torch functions that make tensors: where what they make lives."""

from __future__ import annotations

import ast

from devlint import device
from devlint.device import Device, Role, TypePredicate
from devlint.flow.catalog import torch_table
from devlint.flow.catalog.creation import CUDA_MODULES, CUDA_TYPES, DATA, FLAT, LEGACY, SIZED
from devlint.flow.core import events
from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.registry import KINDS, MODELS, ObjectModel
from devlint.flow.domain.provenance import NO_ORIGIN, Origin
from devlint.flow.domain.tensors import DeviceValue, Tensor, TensorType, as_tensor, is_definite, named_place
from devlint.flow.domain.values import Const, Named, Opaque, Sequence, Unknown, Value, is_literal, is_none
from devlint.flow.models.data.datasets import SampleCode
from devlint.flow.syntax import names, nodes
from devlint.flow.transfer import device_queue
from devlint.flow.transfer.defaults import default_place
from devlint.immutable import replace
from devlint.sites.base import Act, Step

_COUNTS = frozenset({"item", "numel", "nelement", "dim", "ndimension"})
"""Methods of tensors that return one number."""
_LISTED, _TENSOR = frozenset({"list", "tuple"}), frozenset({"torch.Tensor"})
_LISTS = frozenset({"builtins.list", "builtins.sorted", "builtins.tuple", "builtins.range"})


def is_plain(path: str) -> bool:
    """Whether it is a function of torch that makes a tensor of numbers alone, such as a size."""
    entry = torch_table.function(path)
    return entry is not None and entry.rule == "default_or_kwarg"


def make(
    frame: Frame, call: Call, path: str, entry: torch_table.Function | None, beside: Tensor | None = None
) -> Tensor:
    """The tensor that a factory makes; ``beside`` is the tensor whose method it is, as in ``x.new_zeros(3)``."""
    for observer in events.heard(frame, "on_creation"):
        observer.on_creation(frame, call)
    rule = entry.rule if entry else "cpu"
    if rule == "default_or_kwarg" or (beside is not None and _is_sized(path)):
        _read_sizes(frame, call, path)
    name = path.rpartition(".")[2]
    data = beside or _data_tensor(frame, call, rule)
    asked = call.argument(-1, "device")
    place, chosen = _place(frame, call, asked, data, rule)
    if chosen:
        frame.component(SampleCode).placed(frame, call.node, place)
    many, rank = _dimensions(frame, call, name, None if beside else data)
    source = asked.source if isinstance(asked, DeviceValue) else None
    if chosen and asked is not None:
        for observer in events.heard(frame, "on_placed_creation"):
            observer.on_placed_creation(frame, call, path, place)
    fresh = place.implied and source is None
    before = source or (data.origin if data else NO_ORIGIN)
    story = (
        (Step(call.node, f"created on {place} here", Act.CREATED),)
        if chosen or fresh
        else data.origin.story
        if data
        else ()
    )
    return Tensor(
        place,
        many=many,
        rank=rank,
        grad="leaf" if is_literal(call.keywords.get("requires_grad"), True) else "",
        complex=bool(data and data.complex) or any(map(_is_imaginary, nodes.given(call.node))),
        derived=bool(data and data.derived and not chosen),
        pinned=Step(call.node, "pinned here") if is_literal(call.keywords.get("pin_memory"), True) else None,
        near=device.IMPLIED_CPU if name == "tensor" and not place.known and not chosen else device.UNKNOWN,
        origin=Origin(story, path, call.node) if fresh else Origin(story, before.factory, before.node),
    )


def _is_imaginary(argument: ast.expr) -> bool:
    """Whether an argument spells out imaginary numbers: ``1j``, ``[1.0, 2j]``."""
    numbers = argument.elts if isinstance(argument, (ast.List, ast.Tuple)) else (argument,)
    return any(isinstance(number, ast.Constant) and isinstance(number.value, complex) for number in numbers)


def _is_sized(path: str) -> bool:
    """Whether a method makes a tensor of a size."""
    return path.rpartition(".new_")[2] in SIZED


def _read_sizes(frame: Frame, call: Call, path: str) -> None:
    """Sizes and bounds are numbers, which the host has to know."""
    for node, value in call.given():
        if node is not call.keyword_nodes.get("out"):
            device_queue.numbered(frame, call.node, node, value, path.rpartition(".")[2])


def _data_tensor(frame: Frame, call: Call, rule: str) -> Tensor | None:
    """The tensor among the arguments that decides where the result lives, for ``*_like`` and ``as_tensor``."""
    if rule == "arg_tensor_or_cpu":
        return next((as_tensor(value) for value in _moments(call) if is_definite(value)), None)
    if rule not in ("like_input_or_kwarg", "data_or_default") or not call.positional:
        return None
    first = call.positional[0]
    if is_definite(first) and not _is_listed(frame, call):
        return as_tensor(first)
    return _followed(frame, call, first) if rule == "like_input_or_kwarg" else None


def _moments(call: Call) -> list[Value]:
    """What ``torch.normal`` draws around, and how far: tensors, which say where the result lives, or numbers."""
    given = (call.argument(0, "mean"), call.argument(1, "std"))
    return [value for value in given if value is not None]


def _followed(frame: Frame, call: Call, other: Value) -> Tensor:
    """What ``zeros_like`` takes its device from: a tensor, or it would raise, wherever that may be."""
    tensor = as_tensor(other)
    strange = isinstance(other, Unknown) or (isinstance(other, Opaque) and other.hint == "")
    named = names.dotted(call.node.func).endswith("_like")
    if tensor.device.known or tensor.near.known or not strange or not named:
        # what else follows its argument takes arrays as well
        return tensor
    key = f"{frame.name}:like@{call.node.lineno}:{call.node.col_offset}"
    return replace(tensor, device=device.symbol(key, frame.interpreter.text(call.nodes[0]), Role.INPUT), derived=True)


def _place(frame: Frame, call: Call, asked: Value | None, data: Tensor | None, rule: str) -> tuple[Device, bool]:
    """Where, and whether the call asks for it."""
    if asked is not None and not is_none(asked):
        for observer in events.heard(frame, "on_device_use"):
            observer.on_device_use(frame, call.node, asked, False)
        place = named_place(asked)
        if place is None and isinstance(asked, Const) and isinstance(asked.value, int):
            place = device.accelerator("cuda", asked.value)
        return place or device.UNKNOWN, True
    out = call.keywords.get("out")
    if out is not None and not is_none(out):
        return as_tensor(out).device, False
    if call.open:
        return device.UNKNOWN, False
    if data is not None:
        return data.device, False
    plain = rule != "data_or_default" or not call.positional or _is_listed(frame, call)
    if not plain and _may_be_tensor(frame, call.positional[0], _is_count(call)):
        return device.UNKNOWN, False
    if rule == "arg_tensor_or_cpu" and not all(isinstance(value, Const) for value in _moments(call)):
        # numbers have to come with a size
        return (device.UNKNOWN if call.argument(2, "size") is None else device.IMPLIED_CPU), False
    if rule in ("cpu", "arg_tensor_or_cpu"):
        return device.IMPLIED_CPU, False
    return default_place(frame) or device.UNKNOWN, not frame.interpreter.default_changed and bool(frame.default_device)


def _is_count(call: Call) -> bool:
    """Whether the data is what a method of tensors counts."""
    node = call.nodes[0] if call.nodes else None
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _COUNTS


def _is_listed(frame: Frame, call: Call) -> bool:
    """Whether the data is a list made at once, of which torch makes a new tensor, wherever its items are."""
    node = call.nodes[0] if call.nodes else None
    named = frame.evaluate(node.func) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else None
    return isinstance(named, Named) and named.path in _LISTS


def _may_be_tensor(frame: Frame, data: Value, counted: bool) -> bool:
    """Whether data may be a tensor already: nothing says that it is not."""
    if not isinstance(data, Opaque) or data.hint in ("host", "number"):
        return isinstance(data, Unknown) and not counted
    denied = any(classes == _TENSOR for classes in _classes(frame, data, False))
    return not denied and not _is_list(frame, data)


def _is_list(frame: Frame, data: Opaque) -> bool:
    """Whether a test has told that an argument is a list or a tuple."""
    return any(classes <= _LISTED for classes in _classes(frame, data, True))


def _classes(frame: Frame, data: Opaque, answer: bool) -> list[frozenset[str]]:
    """Those for which a test has told that an argument is, or is not, of one of them."""
    told = [test for test, holds in frame.state.facts.items() if holds is answer and isinstance(test, TypePredicate)]
    return [test.classes for test in told if test.value == data.key]


def _dimensions(frame: Frame, call: Call, name: str, data: Tensor | None) -> tuple[bool | None, int | None]:
    """Whether the result has dimensions, and how many."""
    if data is not None:
        return data.many, data.rank
    if name in FLAT or name.endswith("_window"):
        return True, 2 if name in ("eye", "tril_indices", "triu_indices") else 1
    if name in DATA or name in LEGACY or name.startswith("new_tensor"):
        return _data_dimensions(frame, call, name)
    if name in SIZED and _is_told_all(frame, call):
        return True, None
    if name in SIZED or name in ("new_zeros", "new_ones", "new_full", "new_empty"):
        return _size_dimensions(call, name)
    return None, None


def _is_told_all(frame: Frame, call: Call) -> bool:
    """Whether the size is all that the function is given, ``size=dims`` of ``*dims``: hardly ever nothing."""
    taken = frame.info.node.args.vararg if frame.info is not None else None
    return taken is not None and any(names.is_name(node, taken.arg) for node in nodes.given(call.node))


def _data_dimensions(frame: Frame, call: Call, name: str) -> tuple[bool | None, int | None]:
    first = call.positional[0] if call.positional else call.keywords.get("data")
    if isinstance(first, Const) or (isinstance(first, Opaque) and first.hint == "number"):
        legacy = name in LEGACY
        return legacy, 1 if legacy else 0
    if isinstance(first, Sequence) and first.items and all(isinstance(item, Const) for item in first.items):
        return True, 1
    if isinstance(first, Sequence):
        nested = isinstance(first.item, Sequence)
        return True, None if nested or isinstance(first.item, (Opaque, Unknown)) else 1
    if name in LEGACY or _is_listed(frame, call) or (isinstance(first, Opaque) and _is_list(frame, first)):
        return True, None
    if _is_count(call):
        return False, 0
    node = call.nodes[0] if call.nodes else None
    if isinstance(node, ast.Attribute) and node.attr == "shape":
        return True, 1
    return None, None


def _has_part(call: Call) -> bool | None:
    """Whether a size such as ``(*shape, 1)`` has a part besides those that are unpacked into it."""
    node = call.argument_node(0, "size")
    parts = node.elts if isinstance(node, (ast.Tuple, ast.List)) else ()
    return True if any(not isinstance(part, ast.Starred) for part in parts) else None


def _size_dimensions(call: Call, name: str) -> tuple[bool | None, int | None]:
    given = call.positional
    if name == "randint":
        size = next((value for value in (*given, *call.keywords.values()) if isinstance(value, Sequence)), None)
        return (True, len(size.items)) if size and size.items else (None, None)
    if not given:
        size_value = call.keywords.get("size")
        given = () if size_value is None else (size_value,)
    if not given:
        return (None, None) if call.open else (False, 0)
    if call.starred and len(given) == 1:
        # torch.zeros(*shape): hardly ever an empty shape
        return True, None
    first = given[0]
    if isinstance(first, Sequence):
        return (_has_part(call), None) if first.items is None else (bool(first.items), len(first.items))
    if name in ("full", "new_full"):
        return True, None
    if call.open or call.starred:
        return True, None
    return True, len(given) if len(given) > 1 or isinstance(first, Const) else None


def _parameter(frame: Frame, call: Call, path: str) -> Value:
    data = call.argument(0, "data")
    tensor = as_tensor(data) if data is not None else Tensor(device.IMPLIED_CPU, many=True)
    return replace(tensor, certain=True, buffer=True, grad="parameter", origin=tensor.origin.elsewhere())


def _mask(frame: Frame, call: Call, path: str) -> Value:
    made = make(frame, call, path, torch_table.function("torch.zeros"))
    return replace(made, many=True, rank=2)


def _legacy(frame: Frame, call: Call, path: str) -> Value:
    return make(frame, call, path, None)


def _of_cuda(frame: Frame, call: Call, path: str) -> Value:
    return _typed(frame, call, path, device.accelerator("cuda"))


def _typed(frame: Frame, call: Call, path: str, place: Device) -> Tensor:
    """The tensor that a legacy tensor type makes."""
    for observer in events.heard(frame, "on_placed_creation"):
        observer.on_placed_creation(frame, call, path, place)
    step = Step(call.node, f"created on {place} here", Act.CREATED)
    return Tensor(place, many=True, origin=Origin((step,)))


class _TensorType(ObjectModel):
    """A legacy tensor type that a condition has chosen."""

    def called(self, frame: Frame, call: Call, value: Value) -> Value | None:
        """The tensor that it makes."""
        if not isinstance(value, TensorType):
            return None
        return _typed(frame, call, frame.interpreter.text(call.node.func), value.device)


KINDS[TensorType] = _TensorType()


MODELS.register(
    {
        "torch.nn.Parameter": _parameter,
        "torch.nn.Buffer": _parameter,
        "torch.nn.Transformer.generate_square_subsequent_mask": _mask,
        **dict.fromkeys((f"torch.{name}" for name in LEGACY), _legacy),
        **dict.fromkeys((f"torch.{module}.{name}Tensor" for module in CUDA_MODULES for name in CUDA_TYPES), _of_cuda),
    }
)
