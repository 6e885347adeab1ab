"""Modules that hold nothing: no parameter, no buffer, no other module; moving one does nothing at all."""

from __future__ import annotations

from devlint.flow.catalog import modules, torch_table
from devlint.flow.core.call import CREATOR, Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.domain.heap import CHANGED, CHILDREN, DEVICE, ORIGIN
from devlint.flow.domain.objects import Module
from devlint.flow.domain.tensors import DeviceValue
from devlint.flow.domain.values import Const, Opaque
from devlint.flow.program import module_classes

_OF_ITSELF = frozenset({CHILDREN, DEVICE, ORIGIN, CREATOR, "training"})
"""Fields of a module in the heap that are no parts of it."""


def made_empty(call: Call, path: str) -> bool:
    """Whether what a class of ``torch.nn`` makes of these arguments is known to hold nothing."""
    known = torch_table.module(path)
    if known is None or path in modules.TAKE_MODULES or call.open or call.starred:
        return False
    if known.buffer_arguments:
        plain = all(isinstance(value, Const) for value in call.positional)
        return plain and all(_is(call, name, None) for name in known.buffer_arguments)
    parameters = known.has_params and not _is_off(call, path, modules.OF_PARAMETERS)
    buffers = known.has_buffers and not _is_off(call, path, modules.OF_BUFFERS)
    return not parameters and not buffers


def _is_off(call: Call, path: str, arguments: tuple[str, ...]) -> bool:
    """Whether one of the arguments says that there shall be none."""
    implied = path in modules.BARE_BY_DEFAULT and len(call.positional) <= 1
    if implied and all(_is(call, name, False) for name in arguments):
        return True
    return any(name in call.keywords and _is(call, name, False) for name in arguments)


def _is(call: Call, name: str, expected: object) -> bool:
    """Whether an argument is, or is not given and so is, such a constant."""
    value = call.keywords.get(name)
    return value is None or (isinstance(value, Const) and value.value is expected)


def is_empty(frame: Frame, module: Module) -> bool:
    """Whether a module was made without any part, and has not been given one since."""
    if (module.oid, CHANGED) in frame.state.heap or not (module.empty or _of_an_empty_class(frame, module)):
        return False
    given = (name for owner, name in frame.state.heap if owner == module.oid)
    return all(name in _OF_ITSELF for name in given)


def _of_an_empty_class(frame: Frame, module: Module) -> bool:
    """Whether a class of the project has nothing to be moved, and its constructor was given nothing to keep."""
    call = CREATOR.of(frame.state.heap, module.oid)
    if module.cls is None or call is None or call.open or call.starred:
        return False
    plain = all(isinstance(value, (Const, DeviceValue, Opaque)) for value in call.values())
    return plain and module.cls.method("_apply") is None and module_classes.is_empty(module.cls)
