"""DVL703: functions and arguments about devices that torch has renamed, or ignores."""

from __future__ import annotations

from devlint.finding import Applicability, Severity
from devlint.rules.legacy.deprecation import DeprecatedName
from devlint.torch_api.rows import Topic


class DeprecatedDeviceApi(DeprecatedName):
    """A function or an argument about devices that torch has renamed, or does not heed any more.

    ## What it does
    Reports deprecated names that have to do with devices: `torch.cuda.memory_cached`, `reset_max_memory_allocated` and
    their kin, `DistributedDataParallelCPU`, `torch.get_autocast_gpu_dtype` and its kin, `torch.has_cuda`,
    `torch.accelerator.current_device_idx`; and deprecated arguments: `pin_memory_device` of a loader, the device of
    `Tensor.pin_memory` and `Tensor.is_pinned`, `broadcast_buffers` and `check_reduction` of
    `DistributedDataParallel`, `use_cuda` of a profiler; and `.cuda_time`,
    `.cuda_time_total` and their kin, in files that speak of profiles. Who selects the rule by its code is also told of
    the wrappers of Apex, and of what Lightning 2 has taken from its trainer: `gpus`, `amp_backend` and
    `accelerator="ddp"`.

    ## Why it matters
    torch warns, and takes them away some day; `.cuda_time_total` and its kin are gone already from the averages that
    `key_averages()` of a profile makes. Some do something else than they say already: `pin_memory_device` is
    ignored, and `reset_max_memory_allocated` resets all peaks.

    ## Example
    ```python
    def report():
        return torch.cuda.memory_cached()
    ```

    ## Use instead
    ```python
    def report():
        return torch.cuda.memory_reserved()
    ```

    ## When it stays silent
    - Code for several versions of torch: a `try` that handles an ImportError or AttributeError, a branch that hangs on
      `hasattr` or on the version.
    - The import alone, `isinstance` and other comparisons, and base classes.
    - The receiver of `.pin_memory(device)` is not known to be a tensor.
    - `target-torch` is older than what is to be used instead. Without one the newest torch is
      meant, and what needs a torch younger than two years is told to those who select the rule.

    ## Fix safety
    Safe: the old name calls the new one, or the argument does nothing; unsafe where that came with a torch newer than
    2.4 and no `target-torch` is set. `broadcast_buffers=False` is an exception:
    `forward_sync_buffers=False` synchronizes the buffers when the module is wrapped, which the old argument did not.
    There is no fix for the `use_cuda` of `torch.profiler.profile`.

    ## References
    - [Memory management](https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management)
    - [DistributedDataParallel](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html)
    - [Automatic mixed precision](https://docs.pytorch.org/docs/stable/amp.html)
    """

    code = "DVL703"
    severity = Severity.INFO
    fixes = (Applicability.SAFE, Applicability.UNSAFE)
    topic = Topic.DEVICE_API
