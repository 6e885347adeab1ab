"""Classes of a project that are data loaders: what their constructors hand on to that of ``DataLoader``."""

from __future__ import annotations

import ast

from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.registry import CLASSES, ObjectModel
from devlint.flow.domain.heap import Field
from devlint.flow.domain.objects import Function, Instance
from devlint.flow.domain.tensors import Loader
from devlint.flow.domain.values import UNKNOWN, Value
from devlint.flow.models.data.datasets import LOADER
from devlint.flow.models.data.loaders import Loaders
from devlint.flow.program.symbols import ClassInfo

_MADE = Field("loader", Loader)
"""The loader that an object is, as its constructor has set it up."""
_BATCHING = ("__iter__", "__next__", "__new__")
"""Methods that decide what a loop over a loader gets."""


def derived(frame: Frame, info: ClassInfo, call: Call) -> Loader | None:
    """The loader that a new object of a class is, if it has what makes its batches from torch's ``DataLoader``."""
    if LOADER not in info.roots() or any(map(info.method, _BATCHING)):
        return None
    init = info.method("__init__")
    if init is not None and init.index is not frame.interpreter.index:
        # of a loader of another file that one has to tell
        return None
    if init is None:
        return frame.component(Loaders).make(frame, call, LOADER)
    self_ = frame.interpreter.self_value(info)
    if isinstance(self_, Instance):
        frame.interpreter.enter(frame, Function(init, (), self_), call)
        return _MADE.of(frame.state.heap, self_.oid)
    return None


class _Super(ObjectModel):
    """``super()``: of what its methods do, only the set-up of a loader is known."""

    def method(self, frame: Frame, call: Call, value: Value, node: ast.Attribute) -> Value | None:
        owner = frame.owner
        if node.attr != "__init__" or owner is None or LOADER not in owner.roots():
            return None
        made = frame.component(Loaders).make(frame, call, LOADER)
        _MADE.put(frame.state.heap, owner.oid, made)
        return UNKNOWN


CLASSES.register({"super": _Super()})
