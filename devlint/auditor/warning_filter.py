"""Calls of torch that may warn where the script has nothing to do with it."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class _Here:
    """Stands in a filter for the pattern of a text, and matches whatever this thread is warned of."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()

    def match(self, text: str) -> bool:
        return threading.get_ident() == self._thread


@contextmanager
def unwarned() -> Iterator[None]:
    """Ignore what this thread is warned of inside.

    After ``warnings.catch_warnings`` Python forgets which warnings it has shown, and the script's would be shown again.
    """
    entry = ("ignore", _Here(), Warning, None, 0)
    filters: Any = warnings.filters
    filters.insert(0, entry)
    try:
        yield
    finally:
        if entry in filters:  # another thread may have emptied the list
            filters.remove(entry)
