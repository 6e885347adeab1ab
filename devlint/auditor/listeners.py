"""All listeners of an audit, in the order in which they hook in."""

from __future__ import annotations

from devlint.auditor.session import Listener, Session


def listeners(session: Session) -> list[Listener]:
    """The listeners for a session; torch has been imported."""
    return []
