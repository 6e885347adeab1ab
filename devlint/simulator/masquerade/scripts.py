"""TorchScript: what scripted code calls, what it raises, and the files that scripts are saved in."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import torch
from torch.jit import _builtins, _serialization

from devlint.auditor.patches import Patches
from devlint.simulator import devices, dispatch, registration, tensor
from devlint.simulator.masquerade.tensors.storage import SimulatedStorage
from devlint.simulator.tensor import SimulatedTensor

_seeming: Any = torch._C.TensorBase.untyped_storage
"""The storage that C++ code finds in a simulated tensor: it is empty, the numbers are in the host tensor's."""


def _telling(original: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(self, *args, **kwargs)
        except RuntimeError as error:
            said, lost = str(error).rstrip(), dispatch.refusal()
            if said.endswith("RuntimeError:") and lost is not None:  # the interpreter drops what Python code says
                error.args = (f"{said} {lost}\n",)
            raise

    return call


def let_scripts_find_replacements(patches: Patches) -> None:
    """Let `torch.jit` know its operations by the functions that took the places of torch's own, too.

    It knows them by identity, and would compile what it does not know.
    """
    jit: Any = _builtins
    known = dict(jit._get_builtin_table())
    patches.set(jit, "_builtin_table", None)  # the next call looks at all of torch again
    patches.set(jit, "_builtin_table", known | jit._get_builtin_table())


def _set(op: Any, args: Any, kwargs: Any) -> Any:
    """``set_`` with a storage, by which a script's tensors are read when it is saved."""
    target, storage, *rest = args
    if not isinstance(storage, SimulatedStorage) and storage.device.type == devices.NAME:
        for known in gc.get_objects():  # nothing leads back from such a storage, and scripts are saved once in a while
            if issubclass(type(known), SimulatedTensor) and _seeming(known)._cdata == storage._cdata:
                storage = known.host.untyped_storage()
                break
    return dispatch.run(op, (target, storage, *rest), kwargs)


def _loading(original: Callable[..., Any]) -> Callable[..., Any]:
    def load(*args: Any, **kwargs: Any) -> Any:
        made: list[SimulatedTensor] = []
        make, run = tensor._make, tensor.dispatch

        def keep(*given: Any, **options: Any) -> Any:
            made.append(make(*given, **options))
            return made[-1]

        def fill_first(op: Any, given: Any, options: Any) -> Any:
            _fill(made)
            return run(op, given, options)  # type: ignore[misc]  # set when the backend is installed

        tensor._make, tensor.dispatch = keep, fill_first
        try:
            return original(*args, **kwargs)
        finally:
            tensor._make, tensor.dispatch = make, run
            _fill(made)

    return load


def _fill(made: list[SimulatedTensor]) -> None:
    """Give tensors their numbers into which C++ code has put the storage, the size and the strides of others."""
    whole = {_seeming(one)._cdata: one.host for one in made if one.size() == one.host.size()}
    for one in made:
        if one.size() != one.host.size():
            memory = whole[_seeming(one)._cdata].untyped_storage()
            one.host = one.host.new_empty(0).set_(memory, one.storage_offset(), one.size(), one.stride())


def install(patches: Patches) -> None:
    """Let scripts be saved and loaded, and tell what went wrong in them."""
    native: Any = torch._C
    for kind in (native.ScriptFunction, native.ScriptMethod):
        patches.set(kind, "__call__", _telling(kind.__call__))
    for overload in ("source_Storage", "source_Storage_storage_offset"):
        registration.handle(f"set_.{overload}", _set)
    load = _loading(torch.jit.load)
    for owner in (torch.jit, _serialization):
        patches.set(owner, "load", load)
