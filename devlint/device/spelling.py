"""Device literals: the strings that torch reads as devices."""

from __future__ import annotations

import functools
import re

from devlint.device.lattice import CPU, UNKNOWN, Device, accelerator

ACCELERATOR_TYPES = frozenset({"cuda", "mps", "xpu", "hpu", "npu", "xla", "mtia", "ipu", "hip", "mlu", "privateuseone"})
_DEVICE_TEXT = re.compile(r"([a-z_]+)(?::(\d+))?")


@functools.lru_cache(maxsize=1024)
def parse(text: str) -> Device | None:
    """The device that a string literal names, ``None`` when it names none."""
    match = _DEVICE_TEXT.fullmatch(text)
    if match is None:
        return None
    type_, index = match.group(1), match.group(2)
    if type_ == "cpu":
        return CPU
    if type_ in ACCELERATOR_TYPES:
        return accelerator(type_, None if index is None else int(index))
    return UNKNOWN if type_ == "meta" else None
