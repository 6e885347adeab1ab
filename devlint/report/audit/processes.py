"""How processes are called and told apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from devlint.record import Process, Record
from devlint.report.wording import duration, share


def ranks(record: Record) -> list[Process]:
    """The processes of a distributed run, by rank; empty if there was one process only."""
    found = [process for process in record.processes if process.rank is not None]
    return sorted(found, key=lambda process: process.rank or 0) if len(found) > 1 else []


def trainers(record: Record) -> list[Process]:
    """The processes whose steps count: those that trained, else the ones that are no helpers."""
    trained = [process for process in record.processes if process.steps.train]
    return trained or [process for process in record.processes if process.role in ("main", "rank")]


def leaders(record: Record) -> list[Process]:
    """The processes of which the end of the run is told: all but helpers, if there are others."""
    return [process for process in record.processes if process.role in ("main", "rank")] or list(record.processes)


def peak(process: Process) -> int:
    """The most bytes that tensors took at once on a device."""
    return max((device.peak for device in process.environment.devices), default=0)


def waiting(processes: Sequence[Process]) -> tuple[str, str, bool] | None:
    """Of a median step the share and the time of waiting for its loader, at worst, and whether others waited, too."""
    both = [(process.steps.loader_seconds, process.steps.step_seconds) for process in processes]
    known = [(waited, step) for waited, step in both if waited is not None and step]
    if not known:
        return None
    waited, step = max(known, key=lambda pair: pair[0] / pair[1])
    return share(waited, step), duration(waited), len(known) > 1


def groups(record: Record) -> list[tuple[str, list[Process]]]:
    """All processes, those together that are shown in one table, and who they are; the ones that trained come first."""
    of_loop = trainers(record)
    others = [process for process in record.processes if process not in of_loop]
    started = [process for process in others if process.role not in ("main", "rank")]
    named = [(title(process), [process]) for process in others if process not in started]
    beside = [(title(started[0]) if len(started) == 1 else "other processes", started)] if started else []
    return [("", of_loop), *named, *beside]


def shared(record: Record) -> list[tuple[str, list[Process]]]:
    """Devices that several ranks of one machine used, with those ranks."""
    users: dict[tuple[tuple[str, int], str], list[Process]] = defaultdict(list)
    for process in ranks(record):
        if process.device and not process.device.startswith("cpu"):
            users[machine(record, process), _physical(process)].append(process)
    return [(found[0].device, found) for found in users.values() if len(found) > 1]


def machine(record: Record, process: Process) -> tuple[str, int]:
    """On which machine a process ran: the host, and in a simulation the first rank of its launcher.

    Who tries on one machine what is meant for two starts a launcher for each, which has devices of its own.
    """
    first = 0
    if record.simulated and process.rank is not None and process.local_rank is not None:
        first = process.rank - process.local_rank
    return process.environment.host, first


def title(process: Process) -> str:
    """``rank 1``, ``a loader worker``, ``process 4711``."""
    if process.rank is not None:
        return f"rank {process.rank}"
    if process.role == "loader worker":
        return "a loader worker"
    return "the main process" if process.role == "main" else f"process {process.pid}"


def _physical(process: Process) -> str:
    """The device as the machine numbers it: each rank may see another part of them as ``cuda:0``."""
    kind, _, index = process.device.partition(":")
    visible = process.environment.visible_devices
    names = visible.split(",") if visible else []
    number = int(index) if index.isdigit() else 0
    return f"{kind}:{names[number].strip()}" if number < len(names) else f"{kind}:{number}"
