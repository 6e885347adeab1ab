"""Attributes: what ``base.name`` is, for each kind of base."""

from __future__ import annotations

import ast

from devlint import device, torch_api
from devlint.device import Device, Kind, Role
from devlint.flow.catalog import complex_numbers, torch_table
from devlint.flow.catalog.concepts import OPTIMIZERS
from devlint.flow.catalog.libraries import canonical
from devlint.flow.core import events
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.registry import CLASSES
from devlint.flow.domain.export import outside
from devlint.flow.domain.objects import Function, Instance, Module, Stateful
from devlint.flow.domain.provenance import Origin
from devlint.flow.domain.tensors import Batches, DeviceValue, Tensor, as_tensor
from devlint.flow.domain.values import UNKNOWN, Mapping, Named, Opaque, Sequence, Value
from devlint.flow.evaluation import device_conditions
from devlint.flow.program import mutations, type_hints
from devlint.flow.program.symbols import ClassInfo, FunctionInfo
from devlint.flow.program.type_hints import is_device_name
from devlint.flow.syntax import names, nodes
from devlint.flow.transfer.constructor_devices import told_device
from devlint.flow.transfer.placement import in_graph
from devlint.immutable import replace
from devlint.sites.base import Act

_PYTHON_ATTRIBUTES = frozenset({"shape", "dtype", "ndim", "layout", "itemsize", "nbytes", "requires_grad", "names"})
_DETACHED = frozenset({"data", "grad"})
_NOT_BROUGHT = frozenset(
    """callable chr classmethod delattr dir divmod frozenset globals issubclass locals memoryview object ord property
    setattr staticmethod vars""".split()
)
"""Python's own functions that nobody defines anew; to know that no star does takes all files behind it."""
_GROUPS = Sequence(None, Mapping((("params", Sequence(None, Tensor(device.UNKNOWN))),)))
"""What an optimizer works on: tensors, wherever they are."""
_SAME_ATTRIBUTES = _DETACHED | {"T", "mT", "H", "mH", "real", "imag"}


def attribute(frame: Frame, node: ast.Attribute, base: Value) -> Value:
    """The value of ``base.attr``."""
    attr = node.attr
    if isinstance(base, Named):
        return frame.interpreter.imports.value(Named(canonical(f"{base.path}.{attr}")), names.dotted(node))
    if isinstance(base, (Tensor, Batches)):
        return _tensor_attribute(frame, node, base)
    if isinstance(base, (Module, Instance)):
        return _object_attribute(frame, node, base)
    if isinstance(base, Opaque):
        return _opaque_attribute(frame, node, base)
    if isinstance(base, Stateful):
        model = CLASSES.model(base.path)
        return (model.attribute(frame, node, base) if model is not None else None) or UNKNOWN
    if isinstance(base, Sequence) and attr in ("values", "indices"):
        return base.item
    if isinstance(base, DeviceValue):
        for observer in events.heard(frame, "on_device_use"):
            observer.on_device_use(frame, node, base, True)
    if isinstance(base, DeviceValue) and attr == "type":
        return replace(base, form="text")
    return UNKNOWN


def _tensor_attribute(frame: Frame, node: ast.Attribute, base: Tensor | Batches) -> Value:
    tensor = as_tensor(base)
    if node.attr == "device":
        source = tensor.origin if tensor.origin.node is not None else None
        return DeviceValue(tensor.device, node, source, "tensor" if tensor.certain else "")
    if node.attr == "is_cuda":
        return device_conditions.on_cuda(frame, node.value)
    if node.attr in _PYTHON_ATTRIBUTES:
        return UNKNOWN
    if isinstance(base, Batches):
        # what a batch has is a part of it; what an object of a library's class has is for its rows to say
        return UNKNOWN if base.path else base.under(node.attr)
    return _of_batch(frame, node, tensor) or _same(tensor, node.attr)


def _of_batch(frame: Frame, node: ast.Attribute, base: Tensor) -> Value | None:
    """A part of what each round of a loop moves, which is no module then: it is probably there, too."""
    last = base.origin.story[-1] if base.origin.story and not base.certain else None
    loop = frame.loops[-1].node if frame.loops else None
    if last is None or loop is None or last.act is not Act.MOVED or not nodes.holds(loop, last.node):
        return None
    key = f"{frame.at(loop)}.{names.dotted(node)}" if isinstance(loop, ast.stmt) else ""
    return Opaque(key, names.dotted(node), near=base.device, node=node) if key and names.dotted(node) else None


def _same(tensor: Tensor, attr: str) -> Value:
    """An attribute of a tensor that is a tensor beside it."""
    if attr not in _SAME_ATTRIBUTES or (attr == "grad" and tensor.apart):
        return UNKNOWN
    tensor = replace(tensor, complex=tensor.complex and attr not in complex_numbers.PARTS)
    return replace(tensor, rank=None, grad="" if attr in _DETACHED else in_graph(tensor), buffer=False)


def _object_attribute(frame: Frame, node: ast.Attribute, base: Module | Instance) -> Value:
    attr = node.attr
    held = frame.state.heap.get((base.oid, attr))
    if isinstance(held, Value):
        return outside(frame.state.seen(held), names.dotted(node.value) or node.attr)
    if isinstance(base, Module) and base.wraps is not None:
        wrapper = CLASSES.model(base.path)
        if wrapper is not None:
            wrapper.attribute(frame, node, base)
        if attr == "module":
            return _opaque(frame, node, f"{base.oid}.module", "module")
    if base.cls is not None:
        made = _plain_tensor(frame, base, attr)
        if made is not None:
            return made
        method = base.cls.method(attr)
        if method is not None:
            return _of_method(frame, node, base, base.cls, method)
        if base.cls.is_module and attr == "training":
            return Opaque(f"{base.oid}.training", "self.training")
        if attr == "param_groups" and any(root.startswith(OPTIMIZERS) for root in base.cls.roots()):
            return _GROUPS
        found = _opaque(frame, node, f"{base.oid}.{attr}", "device" if is_device_name(attr) else "")
        if base.oid == base.cls.oid:
            return found
        return replace(found, kept=base) if not found.hint else _device_of(frame, node, base, base.cls) or found
    if isinstance(base, Module) and attr in ("weight", "bias"):
        return Tensor(frame.place_of(base), many=True, origin=frame.origin_of(base), buffer=True)
    # those of torch have no such attribute
    own = attr == "device" and isinstance(base, Module) and not base.path.startswith("torch.")
    return _own_place(frame, node, base) if own else UNKNOWN


def _of_method(
    frame: Frame, node: ast.Attribute, base: Module | Instance, cls: ClassInfo, method: FunctionInfo
) -> Value:
    """A method of an object, or what a property says of it."""
    # of one with a setter, that is the last definition, and its getter is not to be found
    settable = any(one.endswith(".setter") for one in method.decorators)
    kept = any(one.endswith("cached_property") for one in method.decorators)
    if not (settable or kept or "property" in method.decorators):
        return Function(method, (), base)
    said = None if settable or base.oid == cls.oid else _said(frame, node, base, method)
    if said is None and node.attr == "device" and isinstance(base, Module) and base.oid != cls.oid:
        return _own_place(frame, node, base)
    found = _opaque(frame, node, f"{base.oid}.{node.attr}", "device" if is_device_name(node.attr) else "")
    return said or (found.hint and base.oid != cls.oid and told_device(frame, base, node.attr)) or found


def _device_of(frame: Frame, node: ast.Attribute, base: Module | Instance, cls: ClassInfo) -> Value | None:
    """What an object says is its device, where its class has no method for that."""
    if node.attr == "device" and isinstance(base, Module) and not _sets_device(cls):
        return _own_place(frame, node, base)
    return told_device(frame, base, node.attr)


def _own_place(frame: Frame, node: ast.Attribute, module: Module) -> DeviceValue:
    """What a module says is its device, however it finds that out: where it is."""
    return DeviceValue(frame.place_of(module), node, form="tensor")


def _sets_device(cls: ClassInfo) -> bool:
    """Whether a class keeps a device of its own: what a base does that nobody knows is to say where the module is."""
    spoken = (node for info in cls.linearization() for node in info.attributes)
    return any(node.attr == "device" and isinstance(node.ctx, ast.Store) for node in spoken)


def _plain_tensor(frame: Frame, base: Module | Instance, attr: str) -> Value | None:
    """A tensor that the constructor of an object made on the CPU; a module keeps it out of what it moves."""
    if isinstance(base, Instance):
        held = frame.state.heap.get((base.cls.oid, attr))
        # whatever the arguments of this object were
        return frame.state.seen(held) if isinstance(held, Tensor) and held.device.kind is Kind.CPU else None
    if base.cls is None or base.oid == base.cls.oid:
        return None
    made = frame.interpreter.class_heap(base.cls).get((base.cls.oid, attr))
    if not isinstance(made, Tensor) or made.buffer or made.origin.attribute is None or not made.device.implied:
        return None
    if made.device.kind is not Kind.CPU or mutations.changed(base.cls).get(attr):
        return None
    # who asks the module for it is told here, whatever its class does with it
    return replace(made, origin=Origin((made.origin.attribute,)))


def _opaque_attribute(frame: Frame, node: ast.Attribute, base: Opaque) -> Value:
    attr = node.attr
    held = frame.state.heap.get((base.key, attr))
    if isinstance(held, Value):
        return held
    if attr == "is_cuda":
        return device_conditions.on_cuda(frame, node.value)
    if attr == "device" and base.kept is not None and (made := _made(frame, base.kept)) is not None:
        return DeviceValue(made, node, form="tensor")
    if attr == "device" and base.hint != "number":
        # the device of an argument is one symbol, whether it is asked for or met
        role = Role.INPUT if base.hint == "tensor" or base.role is Role.INPUT else Role.DEVICE
        if base.hint == "tensor" or role is Role.INPUT:
            origin = "tensor" if base.hint == "tensor" else ""
            return DeviceValue(device.symbol(base.key, base.text, role), node, form=origin)
        name, body = names.dotted(node.value), frame.interpreter.tree if frame.info is None else frame.info.node
        shown = frame.info is not None and type_hints.hints(frame.info).get(name) == "tensor"
        if (shown and frame.inlined) or not type_hints.is_chosen_by(name, body):
            # it follows a tensor, of which nobody says that somebody has chosen a device for it
            return DeviceValue(device.UNKNOWN, node, form="tensor" if shown or base.near.known else "")
        return DeviceValue(device.symbol(f"{base.key}.device", f"{base.text}.device"), node)
    if base.hint == "tensor":
        if attr in _PYTHON_ATTRIBUTES:
            return UNKNOWN
        return _same(as_tensor(base), attr)
    if attr in ("shape", "dtype", "ndim"):
        return UNKNOWN
    inner = _opaque(frame, node, f"{base.key}.{attr}", "device" if is_device_name(attr) else "")
    if inner.hint == "device":
        return inner
    return replace(inner, role=base.role, derived=base.derived, near=base.near, kept=base.kept)


def _said(frame: Frame, node: ast.Attribute, base: Module | Instance, method: FunctionInfo) -> Value | None:
    """What a property says of an object that was made in code that is known: a device that it keeps, or a tensor's."""
    *before, last = method.node.body
    said = last.value if isinstance(last, ast.Return) and len(before) < 2 else None
    if not isinstance(said, ast.Attribute):
        return None
    if names.dotted(said.value) == "self":
        held = frame.state.heap.get((base.oid, said.attr))
        return frame.state.seen(held) if isinstance(held, Value) else told_device(frame, base, said.attr)
    made = _made(frame, base) if said.attr == "device" else None
    return None if made is None else DeviceValue(made, node, form="tensor")


def _made(frame: Frame, keeper: Value) -> Device | None:
    """Where an object has its tensors that was made in code that is known, and whose method runs, or is looked into.

    A method speaks of ``self.weight.device`` for every object of its class; of one that is called, it is where that
    one is.
    """
    place = frame.place_of(keeper) if isinstance(keeper, Module) else device.UNKNOWN
    return place if place.known or frame.inlined else None


def _opaque(frame: Frame, node: ast.Attribute, key: str, hint: str) -> Opaque:
    return Opaque(key, names.dotted(node) or node.attr, hint, node=node)


def by_star(frame: Frame, name: str) -> Value:
    """What a star brings in under a name: of the project, or one of torch's names, which have one meaning."""
    if name in _NOT_BROUGHT or name.startswith("__"):
        return UNKNOWN
    brought = frame.interpreter.imports.star(name)
    if brought is not None:
        return brought
    for module in frame.interpreter.index.star_modules:
        path = canonical(f"{module}.{name}")
        if torch_table.module(path) is not None or torch_table.function(path) is not None or torch_api.matters(path):
            return Named(path)
    return UNKNOWN
