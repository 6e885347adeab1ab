"""All listeners of an audit, in the order in which they hook in."""

from __future__ import annotations

from devlint.auditor.session import Listener, Session


def counters(session: Session) -> list[Listener]:
    """Those that count copies and waits by line, and know nothing of loops and modules: they cost microseconds each."""
    from devlint.auditor.recorder.attribution import Attribution
    from devlint.auditor.recorder.kernels import Kernels
    from devlint.auditor.recorder.syncs import Syncs
    from devlint.auditor.recorder.syncwarnings import SyncWarnings
    from devlint.auditor.recorder.waits import Waits

    attribution = Attribution(session)
    waits = Waits(session)
    warnings = SyncWarnings(session, attribution, waits)
    return [
        attribution,
        waits,
        warnings,
        Kernels(session, attribution, waits, warnings),
        Syncs(session, waits, warnings),
    ]


def listeners(session: Session) -> list[Listener]:
    """The listeners for a session; torch has been imported."""
    from devlint.auditor.calls.observer import CallObserver
    from devlint.auditor.environment import Surroundings
    from devlint.auditor.loop.hooks import LoopHooks
    from devlint.auditor.loop.loaders import Loaders
    from devlint.auditor.modules.forward import ForwardCheck
    from devlint.auditor.modules.optimizers import Optimizers
    from devlint.auditor.modules.wrappers import Wrappers
    from devlint.auditor.recorder.attribution import Attribution
    from devlint.auditor.recorder.kernels import Kernels
    from devlint.auditor.recorder.moves import Moves
    from devlint.auditor.recorder.sampling import Sampling
    from devlint.auditor.recorder.syncs import Syncs
    from devlint.auditor.recorder.syncwarnings import SyncWarnings
    from devlint.auditor.recorder.uncompiled import Uncompiled
    from devlint.auditor.recorder.waits import Waits

    attribution = Attribution(session)
    waits = Waits(session)
    warnings = SyncWarnings(session, attribution, waits)
    loaders = Loaders(session)
    kernels = Kernels(session, attribution, waits, warnings)
    # on a simulated device, whose times mean nothing, everything is recorded
    sampled = session.settings.sampling and not session.settings.simulated
    return [
        Surroundings(session),
        attribution,
        waits,
        warnings,
        kernels,
        *([Sampling(session, kernels, warnings, waits)] if sampled else []),
        Syncs(session, waits, warnings),
        Moves(session),
        loaders,
        LoopHooks(session, loaders),
        Optimizers(session),
        Wrappers(session),
        ForwardCheck(session),
        CallObserver(session),
        Uncompiled(),  # last, when all functions of the audit are there
    ]
