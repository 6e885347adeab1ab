"""Process groups of simulated devices: NCCL is played by gloo, which works on the tensors' data on the host.

NCCL moves data between devices past the dispatcher, so an audit sees none of it on a real machine, and none here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

from devlint.auditor.patches import Patches
from devlint.simulator import dispatch

_WORKING = (
    "_allgather_base_",
    "_reduce_scatter_base_",
    "allgather_",
    "allgather_coalesced_",
    "allgather_into_tensor_coalesced_",
    "allreduce_",
    "allreduce_coalesced_",
    "alltoall_",
    "alltoall_base_",
    "broadcast_",
    "gather_",
    "recv_",
    "recv_any_source_",
    "reduce_",
    "reduce_scatter_",
    "reduce_scatter_tensor_coalesced_",
    "scatter_",
)
"""Operations of ``torch.ops.c10d`` that write their first argument and hand back the work to wait for."""


def install(patches: Patches) -> None:
    """Let groups be made for NCCL, and the work of a group end with the simulated tensors."""
    if not dist.is_available():
        return
    for name in _WORKING:
        operation = getattr(torch.ops.c10d, name, None)
        if operation is not None:
            dispatch.HANDLERS[operation.default] = _collective
    from torch.distributed import distributed_c10d

    patches.set(distributed_c10d, "is_nccl_available", lambda: True)
    patches.set(dist, "is_nccl_available", lambda: True)
    for name in ("init_process_group", "new_group"):
        played = _played_by_gloo(getattr(distributed_c10d, name))
        patches.set(distributed_c10d, name, played)
        patches.set(dist, name, played)
    told = _told(distributed_c10d.get_backend)
    patches.set(distributed_c10d, "get_backend", told)
    patches.set(dist, "get_backend", told)


def _collective(op: Any, args: Any, kwargs: Any) -> Any:
    """Run a collective operation on the host; what its work ends with are the tensors that it was given."""
    out = dispatch.run(op, args, kwargs)
    work = out[-1] if isinstance(out, tuple) else out
    simulated = _renewed(work, args[0])
    return (args[0], simulated) if isinstance(out, tuple) else simulated


def _renewed(work: Any, tensors: Any) -> Any:
    """The same work with the simulated tensors as its result; whoever reads that expects a list."""
    from torch._C._distributed_c10d import (  # type: ignore[attr-defined]  # the stubs leave it out
        Work,
        _create_work_from_future,
    )

    future = Work.unbox(work).get_future()
    result = [tensors] if isinstance(tensors, torch.Tensor) else tensors
    return _create_work_from_future(future.then(lambda done: (done.wait(), result)[1])).boxed()


_named_nccl: set[str] = set()
"""The names of groups that were made for NCCL; empty for the default group is its own name too."""


def _played_by_gloo(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def make(*args: Any, **kwargs: Any) -> Any:
        position = 0 if original.__name__ == "init_process_group" else 2
        backend = args[position] if len(args) > position else kwargs.get("backend")
        if not isinstance(backend, str) or "nccl" not in backend.lower():
            return original(*args, **kwargs)
        changed = backend.lower().replace("nccl", "gloo")
        if len(args) > position:
            args = (*args[:position], changed, *args[position + 1 :])
        else:
            kwargs["backend"] = changed
        # the device that NCCL would bind itself to at once
        kwargs.pop("device_id", None)
        group = original(*args, **kwargs)
        made = group if group is not None else dist.group.WORLD
        if isinstance(made, dist.ProcessGroup):
            _named_nccl.add(made.group_name)
        return group

    return make


def _told(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def get_backend(group: Any = None) -> Any:
        backend = original(group)
        named = group if group is not None else dist.group.WORLD
        return "nccl" if getattr(named, "group_name", None) in _named_nccl else backend

    return get_backend
