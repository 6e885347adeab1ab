"""Ignore patterns that take no longer to match than the path is long, whoever wrote them.

A pattern becomes a regular expression, and one such as ``a*a*a*a*b`` has Python try every way to share a name out
among its stars. Only the last star of a name, and the last ``**`` of a path, has to be tried more than once: if what
follows another fits at all, then where it fits first.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_STAR = "[^/]*"
_ANYWHERE = "(?:/.+)?"
_FEW = 3


@lru_cache(maxsize=64)
def compiled(lines: tuple[str, ...]) -> GitIgnoreSpec:
    """The patterns of some lines; what raises for one that makes no sense is pathspec's to say."""
    from pathspec import GitIgnoreSpec

    spec = GitIgnoreSpec.from_lines(lines)
    for pattern in spec.patterns:
        regex = getattr(pattern, "regex", None)
        if regex is not None and regex.pattern.count(_STAR) + regex.pattern.count(_ANYWHERE) > _FEW:
            pattern.regex = re.compile(_tamed(regex.pattern))
    return spec


def _tamed(regex: str) -> str:
    """The expression with each of its stars decided at once."""
    first, *rest = regex.split(_ANYWHERE)
    pieces = [_decided(first, 0)]
    for number, part in enumerate(rest, 1):
        part = _decided(part, number)
        last = number == len(rest)
        pieces.append(f"{_ANYWHERE}{part}" if last else _once(f"(?:/.+?)??{part}(?=/)", f"path{number}"))
    return "".join(pieces)


def _decided(regex: str, place: int) -> str:
    """A part of the expression, with the stars of each name decided but the last."""
    first, *rest = regex.split(_STAR)
    pieces = [first]
    for number, part in enumerate(rest, 1):
        # what ends the name is in the way of no other star
        last = number == len(rest) or "/" in part.replace("[^/]", "")
        pieces.append(f"{_STAR}{part}" if last else _once(f"[^/]*?{part}", f"name{place}_{number}"))
    return "".join(pieces)


def _once(regex: str, name: str) -> str:
    """An expression that is not tried again once it has matched; before Python 3.11 there is no other way to say so."""
    return f"(?=(?P<{name}>{regex}))(?P={name})"
