"""What only a real device does: results that come late, and work that is under way while the host goes on."""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from devlint.auditor.patches import Patches
from devlint.auditor.recorder.waits import Waits
from devlint.simulator import dispatch
from devlint.simulator.operations import kernels
from devlint.simulator.tensor import SimulatedTensor
from tests.running.observed import Run

_VIEWS = "view reshape expand detach alias t transpose slice select unsqueeze squeeze permute is_pinned".split()


class _Late:
    """Asynchronous copies to the host that arrive when something waits; until then there is something else."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.pending: dict[int, tuple[torch.Tensor, torch.Tensor, int]] = {}
        self.busy = False

    def copy(self, original: Callable[..., Any], target: Any, source: Any, non_blocking: bool = False) -> Any:
        """``copy_`` on the simulated device."""
        to_host = isinstance(source, SimulatedTensor) and not isinstance(target, SimulatedTensor)
        if not (to_host and non_blocking):
            return original(target, source, non_blocking)
        self.busy = True
        values = source.host.detach().to(target.dtype).clone()
        target.fill_(0 if target.dtype is torch.bool else -1)
        self.busy = False
        self.pending[target.untyped_storage()._cdata] = (target, values, self.run.row())
        return target

    def arrive(self) -> None:
        """All that is on its way."""
        pending, self.pending = self.pending, {}
        self.busy = True
        for target, values, _ in pending.values():
            target.detach().copy_(values)
        self.busy = False

    def read(self, value: Any) -> None:
        """Somebody reads a tensor of the host."""
        found = None
        if isinstance(value, torch.Tensor) and not isinstance(value, SimulatedTensor) and not self.busy:
            found = self.pending.get(value.untyped_storage()._cdata)
        if found is not None:
            self.run.read_early.append(found[2])


class _Readers(TorchDispatchMode):
    def __init__(self, late: _Late) -> None:
        super().__init__()
        self._late = late

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        if name not in _VIEWS and not name.endswith("copy_") and not name.startswith("_to_copy"):
            for leaf in pytree.tree_leaves((args, kwargs)):
                self._late.read(leaf)
        return func(*args, **kwargs)


@contextmanager
def late_copies(run: Run) -> Iterator[None]:
    """Let asynchronous copies to the host arrive late, and note in ``run.read_early`` which were read before."""
    late = _Late(run)
    patches = Patches()
    original = kernels.KERNELS["copy_"]
    kernels.KERNELS["copy_"] = functools.partial(late.copy, original)
    waited: Any = Waits.waited
    patches.set(Waits, "waited", lambda self: (late.arrive(), waited(self))[1])
    to_numpy: Any = torch.Tensor.numpy
    patches.set(torch.Tensor, "numpy", lambda self, **options: (late.read(self), to_numpy(self, **options))[1])
    as_array: Any = torch.Tensor.__array__
    patches.set(torch.Tensor, "__array__", lambda self, *dtype: (late.read(self), as_array(self, *dtype))[1])
    to_text: Any = torch._tensor_str._str
    patches.set(torch._tensor_str, "_str", lambda self, **options: (late.read(self), to_text(self, **options))[1])
    try:
        with _Readers(late):
            yield
    finally:
        kernels.KERNELS["copy_"] = original
        patches.undo()


CLOCKS = "time perf_counter monotonic process_time".split()


@contextmanager
def watched_clocks(run: Run) -> Iterator[None]:
    """Note in ``run.clocks`` which rows read a clock while the device had work since the last time one was read."""
    queued = [0]
    compute = dispatch.run
    patches = Patches()
    waited: Any = Waits.waited

    def queue(*args: Any, **kwargs: Any) -> Any:
        queued[0] += 1
        return compute(*args, **kwargs)

    def wait(self: Any) -> Any:
        queued[0] = 0
        return waited(self)

    def reader(original: Callable[[], Any]) -> Callable[[], Any]:
        def read() -> Any:
            frame = sys._getframe(1)
            if frame.f_code.co_filename == str(run.fixture.path):
                run.clocks.append((frame.f_lineno, queued[0]))
                queued[0] = 0
            return original()

        return read

    patches.set(dispatch, "run", queue)
    patches.set(Waits, "waited", wait)
    for name in CLOCKS:
        for clock in (name, f"{name}_ns"):
            patches.set(time, clock, reader(getattr(time, clock)))
    try:
        yield
    finally:
        patches.undo()
