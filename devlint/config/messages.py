"""What the error lines about what a user wrote have in common."""

from __future__ import annotations

import os
from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of an error line which offers the nearest known word, or nothing."""
    import difflib

    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f" (did you mean {close[0]!r}?)" if close else ""


def leads_out(relative: str) -> bool:
    """Whether a relative path leads out of the directory that it starts from."""
    return relative == os.pardir or relative.startswith(os.pardir + os.sep)
