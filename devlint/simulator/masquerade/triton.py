"""Triton: its interpreter runs its kernels, on the host; what is compiled for CUDA is named as not simulated."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NoReturn

import torch
from torch.utils import _pytree as pytree

from devlint.auditor.patches import Patches
from devlint.simulator import devices
from devlint.simulator.masquerade import card
from devlint.simulator.tensor import SimulatedTensor

_INTERPRET = "TRITON_INTERPRET"
"""What Triton looks for when a kernel is defined, its own library's included."""


class _Utils:
    """What Triton asks the driver of a card, in the place of a module of C that wants `libcuda.so`."""

    get_current_device = staticmethod(devices.current)
    set_current_device = staticmethod(devices.set_current)

    @staticmethod
    def get_device_capability(device: int) -> tuple[int, int]:
        """The compute capability."""
        return torch.cuda.get_device_capability(device)

    @staticmethod
    def get_device_properties(device: int) -> dict[str, int]:
        """Memory in bytes, clocks in kHz, the bus in bits."""
        found = card.properties(device)
        return {
            "max_shared_mem": found.shared_memory_per_block_optin,
            "max_num_regs": found.regs_per_multiprocessor,
            "multiprocessor_count": found.multi_processor_count,
            "warpSize": found.warp_size,
            "sm_clock_rate": found.clock_rate,
            "mem_clock_rate": found.memory_clock_rate,
            "mem_bus_width": found.memory_bus_width,
        }

    @staticmethod
    def load_binary(name: str, *args: object) -> NoReturn:
        """Refuse a kernel that was compiled."""
        _refuse(name)


def _refuse(name: str) -> NoReturn:
    raise NotImplementedError(
        f"devlint does not simulate Triton kernels compiled for CUDA, such as {name}: Triton was imported before the "
        f"simulated accelerator was there, or {_INTERPRET} is not 1"
    )


def _run(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    _refuse(self.__name__)


def _change_driver(module: Any, patches: Patches) -> None:
    patches.set(module, "CudaUtils", _Utils)


def _change_compiler(module: Any, patches: Patches) -> None:
    patches.set(module.JITFunction, "run", _run)


def _in_memory(tensor: SimulatedTensor) -> torch.Tensor:
    tensor.host.untyped_storage().__class__ = torch.UntypedStorage  # it may have been asked for as a device's
    return tensor.host


def _change_interpreter(module: Any, patches: Patches) -> None:
    """Let a kernel work on the memory of a device, and take a number with a fraction for a scalar of 32 bits.

    The interpreter would copy to the host and back, which no card does, and leaves such a number as it is.
    """
    original, call = module._implicit_cvt, module.GridExecutor.__call__

    def converted(argument: Any) -> Any:
        if not isinstance(argument, float):
            return original(argument)
        kind = module.tl.float32
        return module.tl.tensor(module.TensorHandle(module.np.array([argument], module.np.float32), kind), kind)

    def launched(self: Any, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = pytree.tree_map_only(SimulatedTensor, _in_memory, (args, kwargs))
        return call(self, *args, **kwargs)

    patches.set(module, "_implicit_cvt", converted)
    patches.set(module.GridExecutor, "__call__", launched)


_CHANGED = {
    "triton.backends.nvidia.driver": _change_driver,
    "triton.runtime.interpreter": _change_interpreter,
    "triton.runtime.jit": _change_compiler,
}
"""What is done to modules of Triton once they are imported."""


class _Finder(importlib.abc.MetaPathFinder):
    """Finds these modules where others do, and changes them when they have been executed."""

    def __init__(self, patches: Patches) -> None:
        self._patches = patches

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The specification of one of the modules, with what executes it and changes it."""
        change = _CHANGED.get(fullname)
        if change is None:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            loader.exec_module = self._changing(loader.exec_module, change)
        return spec

    def _changing(self, execute: Callable[[ModuleType], None], change: Callable[..., None]) -> Callable[..., None]:
        def exec_module(module: ModuleType) -> None:
            execute(module)
            change(module, self._patches)

        return exec_module


def install(patches: Patches) -> None:
    """Let Triton interpret what it is given from now on, unless the environment says otherwise."""
    if "triton" not in sys.modules and _INTERPRET not in os.environ:
        os.environ[_INTERPRET] = "1"
        patches.add(lambda: os.environ.pop(_INTERPRET, None))
    for name, change in _CHANGED.items():
        if name in sys.modules:
            change(sys.modules[name], patches)
    finder = _Finder(patches)
    sys.meta_path.insert(0, finder)
    patches.add(lambda: sys.meta_path.remove(finder))
