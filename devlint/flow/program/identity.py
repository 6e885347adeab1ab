"""Identities of objects: numbers by which the heap tells them apart."""

from __future__ import annotations

import itertools

_identities = itertools.count(1)


def identity() -> int:
    """A number that no other object of this run has."""
    return next(_identities)


ELSEWHERE = "|"
"""How the keys begin that were given in another file."""
