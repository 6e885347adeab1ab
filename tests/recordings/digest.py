"""What a record says, a trace's or a run's, in the quantities that are compared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from devlint.record import Event, Frame, Record
from tests.recordings.listed import Digest, Quantity

_DEVICE = ("cudaDeviceSynchronize", "hipDeviceSynchronize", "torch.cuda.synchronize")
_READS = ("item", "is_nonzero", "_local_scalar_dense")
"""What reads one value; the last names are those of a trace without stacks, where the operator stands for the line."""
_EVENT = ("cudaEventSynchronize", "torch.cuda.Event.synchronize", "torch.cuda.Stream.synchronize")


def of_trace(record: Record, directory: str) -> Digest:
    """What a trace says that was read in a directory."""
    (process,) = record.processes
    steps = process.steps.train + process.steps.eval
    phases = ("train", "eval") if steps else ("setup", "between", "teardown")
    inside = [event for event in process.events if event.phase in phases]

    def line(frame: Frame) -> str:
        return f"{frame.file.removeprefix(f'{directory}/')}:{frame.line}"

    found = quantities(inside, line)
    stacks = any(quantity.lines for quantity in found)
    return Digest(steps, stacks, stacks and not any("functions and not lines" in note for note in process.notes), found)


def quantities(events: Iterable[Event], line: Callable[[Frame], str]) -> tuple[Quantity, ...]:
    """The events in sum, those together that differ in place only."""
    calls: dict[tuple[str, str, str, str], list[int]] = defaultdict(lambda: [0, 0])
    lines: dict[tuple[str, str, str, str], set[str]] = defaultdict(set)
    for event in events:
        key = _key(event)
        if key is None:
            continue
        calls[key][0] += event.calls
        calls[key][1] += event.bytes if event.kind == "copy" else 0
        if event.frame is not None:
            lines[key].add(line(event.frame))
    return tuple(Quantity(*key, *sums, tuple(sorted(lines[key]))) for key, sums in sorted(calls.items()))


def _key(event: Event) -> tuple[str, str, str, str] | None:
    if event.kind == "sync":
        return "wait", _waited_for(event.name), "", "waits"
    if event.kind != "copy" or "cpu" not in (event.source, event.target):
        return None
    if event.target == "cpu" and event.name.partition(" in ")[0] in _READS:
        return "value read", "", "", "waits"
    what = "to the device" if event.source == "cpu" else "from the device"
    memory = {True: "pinned", False: "pageable", None: ""}[event.pinned]
    host = {True: "waits", False: "goes on", None: "waits in part"}[event.blocking]
    return what, "", memory, host


def _waited_for(name: str) -> str:
    what = name.partition(" in ")[0]
    if what in _DEVICE:
        return "the device"
    return "an event" if what in _EVENT else what
