"""The records of several processes, or machines, as one."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Sequence

from devlint.record import Process, Record

_ORDER = ("main", "rank", "child", "loader worker")


def merge(records: Sequence[Record]) -> Record:
    """One record with all processes; what had been found in each of several has to be found anew."""
    records = [record for number, record in enumerate(records) if record not in records[:number]]
    first = records[0]
    if len(records) == 1:
        return first
    processes = [process for record in records for process in record.processes]
    sources: dict[str, dict[int, str]] = {}
    for record in records:
        for file, lines in record.sources.items():
            sources.setdefault(file, {}).update(lines)
    return dataclasses.replace(
        first,
        started=min((record.started for record in records), key=_moment),
        simulated=any(record.simulated for record in records),
        complete=all(record.complete for record in records),
        processes=tuple(sorted(processes, key=_order)),
        findings=None,
        advice=None,
        sources=sources,
    )


def _order(process: Process) -> tuple[int, float, int]:
    return _ORDER.index(process.role), float("inf") if process.rank is None else process.rank, process.pid


def _moment(started: str) -> float:
    try:
        return dt.datetime.fromisoformat(started).timestamp()
    except ValueError:
        return float("inf")
