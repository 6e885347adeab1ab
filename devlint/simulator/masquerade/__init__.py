"""The masquerade: scripts that say "cuda" land on the simulated device, and `torch.cuda` answers as on a CUDA machine.

Each module of this package puts one part of torch in place; `install` does all, or leaves torch as it was.
"""

from __future__ import annotations

from devlint.auditor.patches import Patches


def install() -> None:
    """Let torch take the simulated device, which must have been set up, for CUDA.  Cannot be undone."""
    from devlint.simulator.masquerade import (
        accelerator,
        amp,
        autograd,
        bindings,
        collectives,
        compilation,
        device_type,
        devices,
        distributed,
        factories,
        generators,
        memory,
        parameters,
        profilers,
        sharded,
        storage,
        streams,
        subclasses,
        tensor_methods,
        tensor_types,
        unsupported,
    )

    parts = (
        devices,
        memory,
        streams,
        device_type,
        bindings,
        accelerator,
        generators,
        tensor_methods,
        tensor_types,
        parameters,
        subclasses,
        storage,
        factories,
        amp,
        autograd,
        collectives,
        compilation,
        profilers,
        distributed,
        sharded,
        unsupported,
    )
    patches = Patches()
    try:
        for part in parts:
            part.install(patches)
    except BaseException:
        patches.undo()
        raise
