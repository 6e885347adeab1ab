"""The masquerade: scripts that say "cuda" land on the simulated device, and `torch.cuda` answers as on a CUDA machine.

Each module of this package puts one part of torch in place; `install` does all, or leaves torch as it was.
"""

from __future__ import annotations

from devlint.auditor.patches import Patches


def install() -> None:
    """Let torch take the simulated device, which must have been set up, for CUDA.  Cannot be undone."""
    from devlint.simulator.masquerade import amp, device_type, scripts, tooling, tracing, triton
    from devlint.simulator.masquerade.cuda import bindings, generators, graphs, memory, settings, streams, unsupported
    from devlint.simulator.masquerade.parallel import collectives, process_groups, sharded
    from devlint.simulator.masquerade.tensors import (
        exchange,
        factories,
        legacy_types,
        methods,
        parameters,
        storage,
        subclasses,
    )

    parts = (
        *(memory, streams, device_type, bindings, generators, graphs, settings),
        *(methods, legacy_types, parameters, subclasses, storage, factories, exchange),
        *(amp, collectives, tooling, tracing, scripts, triton, process_groups, sharded, unsupported),
    )
    patches = Patches()
    try:
        for part in parts:
            part.install(patches)
        scripts.let_scripts_find_replacements(patches)
    except BaseException:
        patches.undo()
        raise
