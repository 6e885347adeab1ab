"""Runs a scenario under torch.profiler and the audit at once, and compares what both saw."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

import devlint
from devlint.record import Event
from tests.gpu.scenarios import Scenario


@dataclass(frozen=True, slots=True)
class Counts:
    """Copies and bytes each way, and how many copies to the device came from pinned memory."""

    to_device: int = 0
    to_device_bytes: int = 0
    to_device_pinned: int = 0
    to_host: int = 0
    to_host_bytes: int = 0
    between: int = 0


@dataclass(frozen=True, slots=True)
class Comparison:
    """One row of the results; ``problem`` is empty where audit and profiler agree."""

    name: str
    audit: Counts
    profiler: Counts
    syncs: int
    hidden: int
    blind: str
    problem: str


def compare(scenario: Scenario) -> Comparison:
    """Measure a scenario after a first run, in which memory and kernels are prepared."""
    scenario.run()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler, devlint.audit() as run:
        scenario.run()
        torch.cuda.synchronize()
    events = [event for process in run.record.processes for event in process.events]
    # the synchronize above is not the scenario's
    syncs = sum(event.calls for event in events if event.kind == "sync") - 1
    audit, profiled = counts_of(events), counts_in(trace_of(profiler))
    return Comparison(
        name=scenario.name,
        audit=audit,
        profiler=profiled,
        syncs=syncs,
        hidden=scenario.hidden,
        blind=scenario.blind,
        problem="" if scenario.blind else problem_of(audit, profiled, scenario.hidden),
    )


def counts_of(events: list[Event]) -> Counts:
    """What the audit counted."""
    copies: Counter[str] = Counter()
    for event in events:
        if event.kind != "copy":
            continue
        if event.source == "cpu":
            copies.update(to_device=event.calls, to_device_bytes=event.bytes)
            copies.update(to_device_pinned=event.calls if event.pinned else 0)
        elif event.target == "cpu":
            copies.update(to_host=event.calls, to_host_bytes=event.bytes)
        else:
            copies.update(between=event.calls)
    return Counts(**copies)


def counts_in(trace: list[dict[str, Any]]) -> Counts:
    """What the profiler recorded; its names are like ``Memcpy HtoD (Pageable -> Device)``."""
    copies: Counter[str] = Counter()
    for event in trace:
        if event.get("cat") != "gpu_memcpy":
            continue
        name, size = event["name"], event["args"].get("bytes", 0)
        if "HtoD" in name:
            copies.update(to_device=1, to_device_bytes=size, to_device_pinned=int("Pinned" in name))
        elif "DtoH" in name:
            copies.update(to_host=1, to_host_bytes=size)
        elif "PtoP" in name:
            copies.update(between=1)
    return Counts(**copies)


def trace_of(profiler: profile) -> list[dict[str, Any]]:
    """The events of a profile; its trace can only be had as a file."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "trace.json"
        profiler.export_chrome_trace(str(path))
        events: list[dict[str, Any]] = json.loads(path.read_text())["traceEvents"]
    return events


def problem_of(audit: Counts, profiler: Counts, hidden: int) -> str:
    """Where the two differ; ``hidden`` copies to the host are the profiler's alone."""
    seen, true = asdict(audit), asdict(profiler)
    true["to_host"] -= hidden
    if hidden:
        # how many bytes a kernel fetches for itself is its own business
        del seen["to_host_bytes"], true["to_host_bytes"]
    return ", ".join(f"{key}: {seen[key]} instead of {true[key]}" for key in seen if seen[key] != true[key])


def rounds(function: Callable[[], object], number: int) -> float:
    """Seconds for ``number`` calls, until the device has finished them."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    start.record()
    for _ in range(number):
        function()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / 1000
