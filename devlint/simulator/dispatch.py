"""Running an operation on simulated tensors: the devices are checked, the host computes, the result is wrapped."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from devlint.simulator import checks, devices, errors, layouts, pinning, plans
from devlint.simulator.refusals import wording
from devlint.simulator.tensor import SimulatedTensor, host_of, index_of, refresh, wrap

Handler = Callable[[Any, Any, Any], Any]
"""What runs an operation: ``handler(op, args, kwargs)``."""
HANDLERS: dict[Any, Handler] = {}
"""By overload (``torch.ops.aten.index.Tensor``), what runs it instead of :func:`run`."""
random_numbers: Callable[[int], contextlib.AbstractContextManager[object]] = contextlib.nullcontext
"""Entered with the index of the device around what draws random numbers for it, which is done on the host."""
on_host_step: Callable[[Callable[[], Any], Any], None] | None = None
"""Told of what is computed for a device in one step that no operation stands for: what does it again, the results."""
_OutOfMemory = Callable[[torch.device, Exception], Exception | None]
out_of_memory: _OutOfMemory = lambda place, error: None  # noqa: E731  # it is replaced
"""What is raised for a device where the host has no memory left; ``None`` where the host's error stands."""
_OF_HOST = re.compile(r"with arguments from the '(\w*)CPU' backend|DefaultCPUAllocator: (can't|not enough)")
"""Errors that speak of the host where a device is meant."""
_of_thread = threading.local()
_HOST = torch.device("cpu")
_AT_ONCE = contextlib.nullcontext()
_NO_TENSORS = frozenset((int, float, bool, complex, str, type(None), torch.dtype))


def dispatch(op: Any, args: Any, kwargs: Any) -> Any:
    """Run an operation of which an argument or the result is simulated."""
    return handled(HANDLERS.get(op, run), op, args, kwargs)


def handled(handler: Handler, op: Any, args: Any, kwargs: Any) -> Any:
    """Let a handler run an operation; what the host lacks or refuses is said as of a device."""
    try:
        return handler(op, args, kwargs)
    except Exception as error:
        if isinstance(error, RuntimeError) and error.args:
            error.args = (wording.of_cuda(str(error)),)
        # remembered by what it says: the exception itself, here or there, would keep the tensors of its frames
        _of_thread.refusal = str(error)
        if _OF_HOST.search(str(error)) is None:
            raise
        raise _on_device(op, args, kwargs, error) from None


def refusal() -> str | None:
    """What the exception said that an operation of this thread last ended with, for who lost it on its way."""
    return getattr(_of_thread, "refusal", None)


def run(op: Any, args: Any, kwargs: Any) -> Any:
    """Check the devices, compute on the host, wrap the result."""
    plan = plans.of(op)
    if plan.implicit and not _has_nested(args):
        return op.decompose(*args, **kwargs)
    if plan.foreign is not None:
        return op._op_dk(plan.foreign, *args, **kwargs)
    places: set[int] = set()
    host_args = [_host(argument, places) for argument in args]
    host_kwargs = {name: _host(argument, places) for name, argument in kwargs.items()} if kwargs else kwargs
    if len(places) > 1 and _is_for_others(plan, args, kwargs, places):
        return taken_apart(op, args, kwargs)
    index, pinned = max(places) if places else -1, False
    if plan.has_device:
        index, pinned = _redirect(host_kwargs, index)
    if plan.refused and index >= 0 and (kind := plans.kind_of(args, kwargs)) in plan.refused:
        raise errors.no_kernel(op.name(), kind)
    drawn = plan.random and index >= 0 and host_kwargs.get("generator") is None
    try:
        with random_numbers(index) if drawn else _AT_ONCE:
            out = plan.compute(*host_args, **host_kwargs)
    except (RuntimeError, IndexError):
        if index < 0 or not plans.is_of_host(op):
            raise
        return taken_apart(op, args, kwargs)
    if plan.returned:
        return _returned(plan, args, kwargs)
    if plan.changes_shape:
        pytree.tree_map(refresh, (args, kwargs))  # lists of tensors, which are no result
    if index < 0:
        return pinning.mark(out) if pinned else out
    return _wrapped(plan, out, args, index)


def _is_for_others(plan: plans.Plan, args: Any, kwargs: Any, places: set[int]) -> bool:
    """Whether the operations that this one is made of look at its tensors, which are of several devices.

    Where it has a kernel of its own that does not take them, raises ``RuntimeError``.
    """
    if plan.implicit:  # the kernel for nested tensors
        raise errors.error("iterator", *(devices.device(index) if index >= 0 else _HOST for index in places))
    made_of_others = plan.common is not None and plan.rules[plans.kind_of(args, kwargs)] == "made of others"
    if made_of_others and plan.name not in checks.SPECIAL:
        return True
    checks.refuse_mixed(plan, args, kwargs)
    return False


def _wrapped(plan: plans.Plan, out: Any, args: Any, index: int) -> Any:
    """What an operation with these arguments has computed on the host, as tensors of a device."""
    if plan.view and torch.is_inference_mode_enabled() and not args[0].is_inference():
        with torch.inference_mode(mode=False):  # a view of a normal tensor is a normal tensor
            return wrap_all(out, index)
    if isinstance(out, torch.Tensor):
        if args and host_of(args[0]) is out:
            return args[0]  # some operations return their argument as it is, such as ``lift_fresh``
        if out.is_nested:
            layouts.refuse_gradients(args)
        return wrap(out, index, counted=plan.view)
    return wrap_all(out, index)


def _has_nested(args: Any) -> bool:
    return any(isinstance(value, torch.Tensor) and value.is_nested for value in args)


def host_step(compute: Callable[[], Any]) -> Any:
    """What ``compute`` returns for a device, in one step that no operation stands for."""
    out = compute()
    if on_host_step is not None:
        on_host_step(compute, out)
    return out


def _on_device(op: Any, args: Any, kwargs: Any, error: Exception) -> Exception:
    """What is raised on a device where the host has no kernel, or no memory."""
    meant: Exception | None
    if isinstance(error, NotImplementedError):
        kind = _OF_HOST.search(str(error))[1]  # type: ignore[index]  # it was found
        meant = errors.no_kernel(op.name(), kind)
        if plans.has_cuda_kernel(op, kind):
            meant = NotImplementedError(f"devlint does not simulate {op.name()}: the host has no kernel for it")
    else:
        given = (value.device for value in args if isinstance(value, SimulatedTensor))
        meant = out_of_memory(kwargs.get("device") or next(given, devices.device(devices.current())), error)
    _of_thread.refusal = str(meant or error)
    return meant or error


def taken_apart(op: Any, args: Any, kwargs: Any) -> Any:
    """Run the operations that this one is made of on every device, each with checks of its own."""
    return op._op_dk(plans.of(op).common, *args, **kwargs)


def _host(value: Any, places: set[int]) -> Any:
    """An argument for the host; the devices of its tensors, -1 for the host, are added to ``places``."""
    kind = type(value)
    if kind is SimulatedTensor:  # first what there is most of
        places.add(index_of(value))
        return value.host
    if kind in _NO_TENSORS:
        return value
    if kind is list or kind is tuple:
        if value and type(value[0]) is int:
            return value  # a shape: what the schema says of the elements of a list it says of all
        return kind([_host(element, places) for element in value])
    if isinstance(value, SimulatedTensor):
        places.add(index_of(value))
        return value.host
    if isinstance(value, torch.Tensor):
        places.add(-1)
    return value


def _redirect(kwargs: dict[str, Any], index: int) -> tuple[int, bool]:
    """Turn a device argument into one of the host.

    Returns the virtual device of the result, -1 if it is not simulated, and whether its memory is to be pinned.
    """
    target, pinned = kwargs.get("device"), bool(kwargs.pop("pin_memory", False))
    if target is not None and target.type != devices.NAME:
        return -1, pinned
    if target is not None:
        kwargs["device"] = _HOST
        devices.use()
        index = devices.check_index(devices.current() if target.index is None else target.index)
    if pinned and index >= 0:
        raise errors.error("pinned")
    return index, pinned


def _returned(plan: plans.Plan, args: Any, kwargs: Any) -> Any:
    """The arguments that an operation wrote, as its result."""
    out = [args[position] if position < len(args) else kwargs[name] for position, name in plan.returned]
    if plan.changes_shape:
        for tensor in out:
            refresh(tensor)
    return out[0] if len(out) == 1 else tuple(out)


def wrap_all(out: Any, index: int) -> Any:
    """The tensors in the result of an operation on a virtual device."""
    if isinstance(out, torch.Tensor):
        return wrap(out, index)
    if isinstance(out, (list, tuple)):
        return type(out)([wrap_all(element, index) for element in out])
    return out
