"""CUDA graphs: what is captured is remembered, operation by operation, and run again with the same memory by a replay.

torch's own classes and functions of `torch.cuda.graphs` stand on `torch._C._CUDAGraph`, which is given here.  On CUDA a
capture computes nothing: so what is written while one is under way is put back at its end, and what is new holds no
numbers (NaN) until the graph is replayed.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Collection
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode
from typing_extensions import Self

from devlint.auditor.patches import Patches
from devlint.simulator import dispatch, layouts, pinning, plans
from devlint.simulator.masquerade.cuda import capture, streams
from devlint.simulator.operations import kernels
from devlint.simulator.tensor import SimulatedTensor, host_of

Pool = tuple[int, int]
"""What torch names a memory pool by."""
_pools = itertools.count(1)
_EMPTY = (
    "The CUDA Graph is empty. This usually means that the graph was attempted to be captured on wrong device or stream."
)
aten = torch.ops.aten


def pool_handle() -> Pool:
    """A new memory pool of the user's."""
    return 0, next(_pools)


class GraphBase:
    """What `torch.cuda.CUDAGraph` stands on."""

    def __new__(cls, keep_graph: bool = False) -> Self:
        """A graph that nothing has been captured of."""
        self = super().__new__(cls)
        GraphBase.reset(self)  # the class that torch derives has a method of that name
        return self

    def reset(self) -> None:
        """Forget what was captured, and let go of its memory."""
        self._steps: list[Callable[[], None]] = []
        self._pool: Pool | None = None
        self._recorder: _Recorder | None = None
        self._ended = False

    def capture_begin(self, pool: Pool | None = None, capture_error_mode: str = "global") -> None:
        """Remember from now on what the device is told to do."""
        if self._ended:
            raise RuntimeError(
                "This CUDAGraph instance already owns a captured graph. To capture a new graph, create a new instance."
            )
        current = torch.cuda.current_stream()
        if current.cuda_stream == 0:
            raise RuntimeError(
                "CUDA graphs must be captured on a non-default stream. (However, after capture, it's ok to replay them "
                "on the default stream.)"
            )
        capture.begin(current)
        self._pool = (next(_pools), 0) if pool is None else pool
        self._stream = current
        self._recorder = _Recorder(self._steps)
        self._recorder.start()

    def capture_end(self) -> None:
        """Stop remembering.  Raises ``RuntimeError`` if something was done that cannot be captured."""
        if self._recorder is None:
            raise torch.AcceleratorError("CUDA error: operation not permitted")
        self._recorder.stop()
        self._recorder = None
        capture.end()
        if torch.cuda.current_stream() != self._stream:
            raise RuntimeError("Capture must end on the same stream it began on.")
        self._ended = True
        if not self._steps:
            warnings.warn(_EMPTY, UserWarning, stacklevel=2)

    def instantiate(self) -> None:
        """Nothing is to be prepared."""

    def replay(self) -> None:
        """Do it all again, with the same memory."""
        if not self._ended:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        for step in self._steps:
            step()

    def pool(self) -> Pool:
        """The memory pool of the graph."""
        if self._pool is None:
            raise RuntimeError("Called CUDAGraph::pool() without a preceding successful capture.")
        return self._pool

    def enable_debug_mode(self) -> None:
        """There is nothing more to be told."""

    def debug_dump(self, debug_path: str) -> None:
        """Raise ``NotImplementedError``: there is no graph of CUDA to be drawn."""
        raise NotImplementedError(
            "devlint does not simulate torch.cuda.CUDAGraph.debug_dump: no graph of CUDA is there"
        )

    def raw_cuda_graph(self) -> int:
        """Raise ``NotImplementedError``: there is no graph of CUDA."""
        raise NotImplementedError(
            "devlint does not simulate torch.cuda.CUDAGraph.raw_cuda_graph: no graph of CUDA is there"
        )

    raw_cuda_graph_exec = raw_cuda_graph


class _Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's own
    """Runs operations as ever, and adds to ``steps`` what runs each again."""

    def __init__(self, steps: list[Callable[[], None]]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # as above
        self._steps = steps
        self._before: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self._made: dict[int, torch.Tensor] = {}

    def start(self) -> None:
        """Begin, with waits and copies refused that CUDA does not take into a graph."""
        self._random = torch.get_rng_state()
        self._handlers = {op: dispatch.HANDLERS[op] for op in kernels.ROUTED if op is not aten.copy_.default}
        dispatch.HANDLERS.update(dict.fromkeys(self._handlers, _refusing))
        kernels.on_crossing = _crossing
        dispatch.on_host_step = self.add
        self.__enter__()  # type: ignore[no-untyped-call]  # as above

    def stop(self) -> None:
        """End, with all memory as it was and nothing in what is new."""
        self.__exit__(None, None, None)  # type: ignore[no-untyped-call]  # as above
        dispatch.on_host_step = kernels.on_crossing = None
        dispatch.HANDLERS.update(self._handlers)
        for memory, before in self._before.values():
            memory.copy_(before)
        self._made.pop(0, None)
        for made in self._made.values():
            if made.is_floating_point() or made.is_complex():
                made.fill_(float("nan"))
        self._before.clear()
        self._made.clear()
        torch.set_rng_state(self._random)

    def add(self, rerun: Callable[[], Any], results: Any, known: Collection[int] = ()) -> None:
        """A step that makes ``results`` anew, and puts them where they were; memory at ``known`` addresses is old."""
        places = _hosts(results)
        self._made.update({_address(place): place for place in places if _address(place) not in known})

        def step() -> None:
            again = _hosts(rerun())
            for place, value in zip(places, again, strict=True):
                if place is not value:
                    place.copy_(value)

        self._steps.append(step)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        plan = plans.of(func) if torch._C._dispatch_has_kernel(func.name()) else None
        if plan is None:
            return func(*args, **kwargs)
        of_device = _of_device((args, kwargs))
        if of_device:
            self._keep_written(plan, args, kwargs)
        out = func(*args, **kwargs)
        known = {_address(part) for host in _hosts((args, kwargs)) for part in layouts.parts(host)}
        alias = plan.view and all(_address(host) in known for host in _hosts(out))  # `contiguous` is only sometimes one
        if alias or not (of_device or _of_device(out)):
            return out
        fixed_args, fixed_kwargs = (args, kwargs) if func in _READING else pytree.tree_map(_fixed, (args, kwargs))

        def rerun() -> Any:
            with torch._C._AutoDispatchBelowAutograd():
                return func(*fixed_args, **fixed_kwargs)

        self.add(rerun, out, known)
        return out

    def _keep_written(self, plan: plans.Plan, args: Any, kwargs: Any) -> None:
        """Remember what is in the memory that an operation is about to write."""
        named = {**dict(zip(plan.parameters, args, strict=False)), **kwargs}
        for host in _hosts([named.get(name) for name in (*plan.written, *_UNDECLARED)]):
            address = _address(host)
            if address and address not in self._before and address not in self._made:
                memory = torch.empty(0, dtype=host.dtype).set_(host.untyped_storage())
                self._before[address] = memory, memory.clone()


_UNDECLARED = ("running_mean", "running_var")
"""What batch normalisation writes without saying so in its schema."""
_READING = (aten._foreach_copy_.default, aten.copy_.default, aten._to_copy.default)
"""What reads the memory of the host when a graph is replayed; all else is given its numbers when it is captured."""


def _fixed(value: Any) -> Any:
    """An argument as a captured operation keeps it."""
    return value.clone() if isinstance(value, torch.Tensor) and not isinstance(value, SimulatedTensor) else value


def _hosts(value: Any) -> list[torch.Tensor]:
    """The tensors in a value, those of a device as tensors of the host."""
    return [host_of(leaf) for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def _of_device(value: Any) -> bool:
    return any(isinstance(leaf, SimulatedTensor) for leaf in pytree.tree_leaves(value))


def _address(host: torch.Tensor) -> int:
    """Where the memory of a tensor begins, 0 if it is in several parts."""
    return host.untyped_storage().data_ptr() if host.layout is torch.strided else 0


def _crossing(host: torch.Tensor, non_blocking: bool) -> None:
    """A graph takes a copy between host and device if the memory is pinned and nobody waits for it."""
    if not pinning.is_pinned(host):
        capture.refuse("pageable")
    if not non_blocking:
        capture.refuse()


def _refusing(op: Any, args: Any, kwargs: Any) -> Any:
    """What the host waits for."""
    capture.refuse()


class PoolBase:
    """What `torch.cuda.MemPool` stands on: a name, since memory is the host's whatever pool it is to come from."""

    def __init__(
        self, allocator: Any = None, is_user_created: bool = True, use_on_oom: bool = False, no_split: bool = False
    ) -> None:
        self._id = pool_handle() if is_user_created else (next(_pools), 0)
        self._allocator = allocator

    @property
    def allocator(self) -> Any:
        """What was given as one: nothing comes from it."""
        return self._allocator

    @property
    def id(self) -> Pool:
        """The name."""
        return self._id

    def use_count(self) -> int:
        """How many hold it: its object."""
        return 1


def install(patches: Patches) -> None:
    """Put `torch.cuda.CUDAGraph` and `torch.cuda.MemPool`, and what uses them, on the simulated device."""
    given = {
        "_CUDAGraph": GraphBase,
        "_MemPool": PoolBase,
        "_graph_pool_handle": pool_handle,
        "_cuda_isCurrentStreamCapturing": capture.active,
        "_host_emptyCache": lambda: None,
        **dict.fromkeys(_OF_POOLS, lambda *arguments: None),
    }
    for name, value in given.items():
        patches.set(torch._C, name, value)
    for module, names in ((torch.cuda.graphs, _OF_GRAPHS), (torch.cuda.memory, ("MemPool", "use_mem_pool"))):
        again = streams.executed_again(module)
        for name in names:
            for owner in (module, torch.cuda):
                patches.set(owner, name, getattr(again, name))


_OF_GRAPHS = ("CUDAGraph", "graph", "make_graphed_callables", "graph_pool_handle", "is_current_stream_capturing")
_OF_POOLS = (
    "_cuda_beginAllocateToPool",
    "_cuda_beginAllocateCurrentThreadToPool",
    "_cuda_endAllocateToPool",
    "_cuda_releasePool",
)
