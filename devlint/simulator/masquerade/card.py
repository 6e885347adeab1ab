"""The graphics card that is simulated: what `torch.cuda` says of it."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field

from devlint.config.sizes import size_of

CUDA_VERSION = "12.8"
CUDNN_VERSION = 91002
NCCL_VERSION = (2, 27, 3)
ARCHITECTURES = "sm_75 sm_80 sm_86 sm_90"
DRIVER_VERSION = 12080
MEMORY_VARIABLE = "DEVLINT_SIMULATED_MEMORY"
"""The environment variable that says how much memory each device has, such as `8GiB`."""
memory = 80 << 30
"""The bytes of memory that each device has: those of a usual data centre card, unless someone says otherwise."""


def set_memory(size: int | str) -> None:
    """Say how much memory each device has; raises ``ValueError`` if that is no size."""
    global memory
    memory = size_of(size) if isinstance(size, str) else size


@dataclass(frozen=True)
class Properties:
    """What `torch.cuda.get_device_properties` returns; the figures are those of a usual 80 GiB data centre card."""

    name: str = "devlint simulated GPU"
    major: int = 8
    minor: int = 0
    total_memory: int = field(default_factory=lambda: memory)
    multi_processor_count: int = 108
    is_multi_gpu_board: int = 0
    is_integrated: int = 0
    max_threads_per_multi_processor: int = 2048
    max_threads_per_block: int = 1024
    warp_size: int = 32
    regs_per_multiprocessor: int = 65_536
    shared_memory_per_block: int = 48 << 10
    shared_memory_per_block_optin: int = 163 << 10
    shared_memory_per_multiprocessor: int = 164 << 10
    L2_cache_size: int = 40 << 20
    clock_rate: int = 1_410_000
    memory_clock_rate: int = 1_593_000
    memory_bus_width: int = 5120
    gcnArchName: str = "devlint simulated GPU"  # noqa: N815  # torch's spelling
    pci_bus_id: int = 0
    pci_device_id: int = 0
    pci_domain_id: int = 0
    uuid: uuid.UUID = field(default=uuid.UUID(int=0))

    def __repr__(self) -> str:
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory >> 20}MB, multi_processor_count={self.multi_processor_count}, "
            f"uuid={self.uuid}, pci_bus_id={self.pci_bus_id}, pci_device_id={self.pci_device_id}, "
            f"pci_domain_id={self.pci_domain_id}, L2_cache_size={self.L2_cache_size >> 20}MB)"
        )


def properties(index: int) -> Properties:
    """The properties of one of the devices; they differ only in where they sit."""
    return Properties(pci_bus_id=index, uuid=uuid.UUID(int=index))
