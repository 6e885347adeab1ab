"""Clocks: what a reading of one is, by how much the device had been given to do."""

from __future__ import annotations

from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.registry import MODELS
from devlint.flow.domain.values import Value
from devlint.flow.transfer.device_queue import Queue, Reading

_CLOCKS = frozenset(
    f"time.{clock}{unit}" for clock in ("time", "perf_counter", "monotonic") for unit in ("", "_ns")
) | {"timeit.default_timer"}
"""Functions that read a clock."""


def _read(frame: Frame, call: Call, path: str) -> Value:
    """A reading of a clock."""
    return Reading(call.node, len(frame.component(Queue).events), len(frame.loops))


MODELS.register(dict.fromkeys(_CLOCKS, _read))
