"""Sizes of memory as people write them."""

from __future__ import annotations

import re

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def size_of(text: str) -> int:
    """A number of bytes, written `8GiB`, `8G` or `512 MiB`; raises ``ValueError`` for anything else."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", text.strip().lower())
    if match is None or not float(match[1]):
        raise ValueError(f"{text!r} is no size of memory such as 8GiB")
    return int(float(match[1]) * _UNITS[match[2]])
