"""New objects of the classes that a project defines."""

from __future__ import annotations

import ast

from devlint import device
from devlint.flow.catalog.modules import WRAPPERS
from devlint.flow.core.call import CREATOR, Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.registry import MODELS
from devlint.flow.domain.heap import ARGUMENTS
from devlint.flow.domain.objects import Class, Instance, Module
from devlint.flow.domain.tensors import Loader, Tensor
from devlint.flow.domain.values import Opaque, Unknown, Value
from devlint.flow.models.data.datasets import SampleCode
from devlint.flow.models.data.derived_loaders import derived
from devlint.flow.program.identity import identity
from devlint.flow.program.module_classes import finds_its_state, has_state
from devlint.flow.program.mutations import (
    is_moved,
    moves_inputs,
    only_if_none,
    places_itself,
    runs_given,
    stays_alike,
)
from devlint.flow.program.symbols import ClassInfo
from devlint.flow.transfer import havoc
from devlint.flow.transfer.constructor_devices import is_placed
from devlint.flow.transfer.escapes import Escapes
from devlint.immutable import replace
from devlint.sites.base import Act, Step


def construct(frame: Frame, cls: Class, call: Call) -> Value:
    """A new object of a class of the project."""
    interpreter, info = frame.interpreter, cls.info
    interpreter.component(Escapes).data(call.values())
    _wrap(frame, info, call)
    if not interpreter.finished and info.is_module and info.index is interpreter.index:
        # with the names of the top level as they are now
        interpreter.class_heap(info)
    if info.is_module:
        module = Module(identity(), cls=info, text=info.name, has_state=has_state(info) is not False)
        # what it is given, and runs, is a part of it, and may be anywhere
        foreign = any(isinstance(given, (Opaque, Unknown)) for given in call.values()) and runs_given(info)
        known = has_state(info) is True and not (
            interpreter.default_changed or foreign or moves_inputs(info) or places_itself(info) or finds_its_state(info)
        )
        place = (frame.default_device or device.IMPLIED_CPU) if known else device.UNKNOWN
        frame.put(
            module,
            device.UNKNOWN if is_placed(call, info) else place,
            Step(call.node, f"`{info.name}` is created on the CPU here", Act.CREATED),
        )
        havoc.kept(frame, call, info, module)
        CREATOR.put(frame.state.heap, module.oid, call)
        return replace(module, spread=moves_inputs(info))
    if loader := derived(frame, info, call):
        return loader
    havoc.kept(frame, call, info, None)
    interpreter.component(SampleCode).transforms(call)
    instance = Instance(identity(), info)
    ARGUMENTS.put(frame.state.heap, instance.oid, call.values())
    CREATOR.put(frame.state.heap, instance.oid, call)
    return instance


def _wrap(frame: Frame, info: ClassInfo, call: Call) -> None:
    """What becomes of the arguments of a class made of a wrapper for several devices, which takes what that takes."""
    wrapper = next((root for root in info.roots() if root in WRAPPERS), "")
    model = MODELS.exact(wrapper) if info.method("__init__") is None else None
    if model is not None:
        model(frame, call, wrapper)


def survives(info: ClassInfo, attribute: str, held: Value, change: str) -> bool:
    """Whether an attribute is what ``__init__`` made it although a method assigns it, or an item of it."""
    if change == "filled":
        # a tensor takes the values of what is written into it, and stays where it is
        return isinstance(held, Tensor) and held.certain
    if isinstance(held, (Loader, Module, Tensor)) and _constructed(info, attribute):
        return not (isinstance(held, Module) and is_moved(info, attribute))
    if isinstance(held, Tensor) and not held.optional:
        # which is never None, and which is written into, or made once more
        alike = held.certain and stays_alike(info, attribute, held.origin.node)
        if alike or only_if_none(info, attribute):
            return True
    # nothing but another parameter can take the place of one
    return info.is_module and isinstance(held, Tensor) and held.buffer and held.grad == "parameter"


def _constructed(info: ClassInfo, attribute: str) -> bool:
    """Whether nothing but the constructor, and methods that only it calls, assigns an attribute of ``self``."""
    return all(
        method.name == "__init__" or (method.initialises and method.name in info.callers)
        for method in info.methods.values()
        for node in method.attributes
        if node.attr == attribute and not isinstance(node.ctx, ast.Load)
    )
