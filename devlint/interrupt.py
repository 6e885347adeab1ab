"""Ctrl-C while devlint is being loaded."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def dies_at_once() -> Iterator[None]:
    """While modules are loaded, Ctrl-C ends the process without a word: an exception there could come out as any other.

    Whoever has taken the signal, or ignores it, keeps it.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    except ValueError:  # not in the main thread, which is the only one that Ctrl-C reaches
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
