"""All listeners of an audit, in the order in which they hook in."""

from __future__ import annotations

from devlint.auditor.session import Listener, Session


def listeners(session: Session) -> list[Listener]:
    """The listeners for a session; torch has been imported."""
    from devlint.auditor.attribution import Attribution
    from devlint.auditor.environment import Surroundings
    from devlint.auditor.forward import ForwardCheck
    from devlint.auditor.kernels import Kernels
    from devlint.auditor.loaders import Loaders
    from devlint.auditor.moves import Moves
    from devlint.auditor.optimizers import Optimizers
    from devlint.auditor.signals import Signals
    from devlint.auditor.syncs import Syncs
    from devlint.auditor.syncwarnings import SyncWarnings
    from devlint.auditor.uncompiled import Uncompiled
    from devlint.auditor.waits import Waits
    from devlint.auditor.wrappers import Wrappers

    attribution = Attribution(session)
    waits = Waits(session)
    warnings = SyncWarnings(session, attribution, waits)
    loaders = Loaders(session)
    return [
        Surroundings(session),
        attribution,
        waits,
        warnings,
        Kernels(session, attribution, waits, warnings),
        Syncs(session, attribution, waits, warnings),
        Moves(session),
        loaders,
        Signals(session, loaders),
        Optimizers(session),
        Wrappers(session),
        ForwardCheck(session),
        Uncompiled(),  # last, when all functions of the audit are there
    ]
