"""A session with a few listeners, in this process, without any kernel overridden."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from devlint.auditor.session import Listener, Session, Settings
from devlint.record import Ending, Process


@contextmanager
def watching(*kinds: Callable[[Session], Listener], root: str = __file__) -> Iterator[Session]:
    """A session with these listeners; ``root`` is a file of the project."""
    session = Session(Settings(roots=(os.path.dirname(root),)))
    session.start([kind(session) for kind in kinds])
    assert not session.failure
    try:
        yield session
    finally:
        session.stop()
    assert not session.failure


def seen(session: Session) -> Process:
    """What it saw."""
    return session.process(Ending())
