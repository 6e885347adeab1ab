"""What a run ran on: versions, devices and their memory, asked without waking a device that the script left asleep."""

from __future__ import annotations

import os
import platform
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import ModuleType
from typing import Any

import torch

from devlint.auditor.session import Listener, Session
from devlint.auditor.warning_filter import unwarned
from devlint.record import Device, Environment

_NVIDIA = "/proc/driver/nvidia/version"
_AMD = "/sys/module/amdgpu/version"
_VERSION = re.compile(r"(?<![\w.])\d+\.\d+(?:\.\d+)?(?![\w.])")


class Surroundings(Listener):
    """Describes the environment; a listener that hooks into nothing.

    A script may reset torch's own record of its peak memory, so the greatest peak of all snapshots is kept.
    """

    def __init__(self, session: Session) -> None:
        self._simulated = session.settings.simulated
        self._peaks: dict[str, tuple[int, int]] = {}

    def describe(self) -> Mapping[str, object]:
        """``environment``, as it is known by now."""
        environment = describe(self._simulated)
        devices = []
        for device in environment.devices:
            known, held = self._peaks.get(device.name, (0, 0))
            peak, reserved = self._peaks[device.name] = max(known, device.peak), max(held, device.reserved)
            devices.append(replace(device, peak=peak, reserved=reserved))
        return {"environment": replace(environment, devices=tuple(devices))}


def describe(simulated: bool = False) -> Environment:
    """The environment of this process; of simulated devices nothing is known but that they are there."""
    distributed = torch.distributed
    grouped = distributed.is_available() and distributed.is_initialized()
    size = os.environ.get("WORLD_SIZE", "")
    ranks = int(size) if size.isdigit() else distributed.get_world_size() if grouped else 1
    # how many CPUs this process may use
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 0
    return Environment(
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}".strip(),
        torch=str(torch.__version__),
        build=_simulated_build() if simulated else _build(),
        driver="" if simulated else _driver(),
        devices=tuple(_devices(simulated)),
        cpu_count=cpus,
        visible_devices=None if simulated else os.environ.get("CUDA_VISIBLE_DEVICES"),
        host=socket.gethostname() if ranks > 1 else "",
    )


def _build() -> str:
    """What torch was built for."""
    for name, version in (("ROCm", torch.version.hip), ("CUDA", torch.version.cuda)):
        if version:
            return f"{name} {'.'.join(str(version).split('.')[:2])}"
    if getattr(torch.version, "xpu", None):
        return "XPU"
    return "MPS" if torch.backends.mps.is_built() else "CPU"


def _simulated_build() -> str:
    """The same where ``torch.version`` plays the part of a build for CUDA: what was compiled in does not change."""
    settings = torch.__config__.show()
    if "USE_CUDA=0" in settings or "USE_CUDA=OFF" in settings:
        return "CPU"
    return _build() if re.search(r"USE_CUDA=(1|ON)", settings) else ""


def _driver() -> str:
    """The version of the graphics driver, from the system, since torch cannot be asked before it is initialised."""
    for path in (_NVIDIA, _AMD):
        try:
            with open(path, encoding="utf-8", errors="replace") as stream:
                found = _VERSION.search(stream.readline())
        except OSError:
            continue
        if found:
            return found.group()
    return ""


def _devices(simulated: bool) -> Iterator[Device]:
    """The visible accelerators, with what is known of them."""
    if simulated:
        yield from (Device(name=f"cuda:{index}", model="(simulated)") for index in range(torch.cuda.device_count()))
        return
    yield from _cuda_like("cuda", torch.cuda, _sleeping_cuda_devices)
    xpu = getattr(torch, "xpu", None)
    if xpu is not None:
        yield from _cuda_like("xpu", xpu, lambda: 0)
    if torch.backends.mps.is_built() and torch.backends.mps.is_available():
        yield Device(name="mps", model=f"Apple {platform.machine()}")


def _cuda_like(kind: str, module: ModuleType | Any, sleeping: Callable[[], int]) -> Iterator[Device]:
    if not module.is_initialized():
        for index in range(sleeping()):
            yield Device(name=f"{kind}:{index}")
        return
    for index in range(module.device_count()):
        name = f"{kind}:{index}"
        try:
            yield _awake(name, index, module)
        except (RuntimeError, AttributeError, AssertionError):  # a card that has failed cannot answer
            yield Device(name=name)


def _awake(name: str, index: int, module: ModuleType | Any) -> Device:
    properties = module.get_device_properties(index)
    versioned = hasattr(properties, "major") and not torch.version.hip
    return Device(
        name=name,
        model=str(properties.name),
        capability=(properties.major, properties.minor) if versioned else None,
        memory=int(properties.total_memory),
        peak=int(module.max_memory_allocated(index)),
        reserved=int(module.max_memory_reserved(index)),
    )


def _sleeping_cuda_devices() -> int:
    """How many cards CUDA would show, by way of the driver's management library: CUDA itself must sleep on."""
    count = getattr(torch.cuda, "_device_count_nvml", None)
    if torch.version.hip or not torch.version.cuda or count is None:
        return 0
    with unwarned():
        return max(int(count()), 0)
