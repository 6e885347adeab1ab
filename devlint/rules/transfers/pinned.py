"""What pinned memory is good for."""

from __future__ import annotations

from devlint.device import Device, Kind

_READERS = ("cuda", "xpu", "hip", "mtia", "npu", "hpu", "privateuseone", "mlu")


def reads_pinned(target: Device | None) -> bool:
    """Whether a copy to ``target`` may go to an accelerator that reads pinned memory."""
    if target is None or not target.known:
        return False
    return any(leaf.kind is Kind.SYMBOL or leaf.type in _READERS for leaf in target.leaves())
