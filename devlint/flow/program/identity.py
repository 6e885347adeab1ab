"""Identities of objects: numbers by which the heap tells them apart."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass


_identities = itertools.count(1)


def identity() -> int:
    """A number that no other object of this run has."""
    return next(_identities)
