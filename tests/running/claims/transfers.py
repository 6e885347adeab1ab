"""What the rules of the family `transfers` claim: copies that the recorder counts, and calls that do nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch

from devlint.finding import Finding, Severity
from devlint.record import Event
from tests.running.claims import Claim, Unobservable, costing, itself
from tests.running.late import late_copies
from tests.running.observed import Run


def enters(event: Event) -> bool:
    """Whether bytes went from the host to an accelerator."""
    return event.kind == "copy" and event.source == "cpu" and event.target.startswith("cuda")


def leaves(event: Event) -> bool:
    """Whether bytes went from an accelerator to the host."""
    return event.kind == "copy" and event.source.startswith("cuda") and event.target in ("cpu", "")


def counted(events: Iterable[Event], when: Callable[[Event], bool]) -> int:
    """How many of the events are such."""
    return sum(event.calls for event in events if when(event))


def rows(run: Run, when: Callable[[Event], bool]) -> list[str]:
    """The rows of the fixture with such events, in words."""
    return [
        f"{event.kind} {event.name} in row {event.frame.line}"
        for event in run.own_events()
        if when(event)
        if event.frame
    ]


def _redundant(finding: Finding, run: Run) -> str | None:
    """A move returned its input, or a value left the accelerator and came back, or was copied there before."""
    found = run.events(finding)
    if "once more" in finding.message:
        return None if any(event.doubled for event in found) else "another place has not copied it there before"
    if "by way of the CPU" in finding.message:
        there, back = counted(found, leaves), counted(found, enters)
        return None if there and there == back else f"{there} copies to the host, {back} back"
    return costing("move").shown(finding, run)


def _invariant(finding: Finding, run: Run) -> str | None:
    """The same values were copied each time."""
    values = [value.detach().cpu() for value in run.seen(run.node(finding)) if isinstance(value, torch.Tensor)]
    copies = counted(run.events(finding), enters)
    if len(values) < 3 or copies < len(values):
        return f"{copies} copies for {len(values)} values"
    differs = any(not torch.equal(values[0], value) for value in values)
    return "the values differ" if differs else None


def _copied_again(run: Run) -> Iterable[str]:
    """Copies of an unchanged tensor in every step, or in every call where there are no steps."""
    steps = run.process.steps.train if run.process else 0
    return rows(run, lambda event: enters(event) and event.repeats > 0 and event.repeats + 1 >= steps)


def _created(finding: Finding, run: Run) -> str | None:
    """A copy to the accelerator; where the message says so, another device's generator raises besides."""
    copies = counted(run.events(finding), enters)
    return None if copies else "no copy"


def _waits(finding: Finding, run: Run) -> str | None:
    """The host waited for a copy from pinned memory; or, where the flag stands in place of a device, torch raised."""
    if finding.severity is Severity.ERROR:
        raised = run.failure is not None and run.failure.is_at(finding) and "TypeError" in run.failure.text
        return None if raised else "no TypeError"
    if "in every step" in finding.message:
        return costing("copy", when=lambda event: enters(event) and bool(event.blocking), calls=3).shown(finding, run)
    return costing("copy", when=_waits_for_pinned).shown(finding, run)


def _waits_for_pinned(event: Event) -> bool:
    return enters(event) and bool(event.pinned and event.blocking)


def _early(finding: Finding, run: Run) -> str | None:
    """What was read was not there yet."""
    early = [row for row in run.read_early if row in range(finding.span.row, finding.span.end_row + 1)]
    return (
        None
        if early or any(event.unwaited for event in run.events(finding))
        else "nothing was read before it was there"
    )


def _pinned_once(finding: Finding, run: Run) -> str | None:
    """As many bytes were copied into pinned memory as from there to the accelerator."""
    found = run.events(finding)
    pinned = sum(event.bytes for event in found if event.kind == "pin")
    copied = sum(event.bytes for event in found if enters(event) and event.pinned)
    return None if pinned and pinned == copied else f"{pinned} bytes pinned, {copied} copied"


def _pinned_for_one(run: Run) -> Iterable[str]:
    """Statements that pin and copy."""
    copied = {event.frame.line for event in run.own_events() if enters(event) and event.pinned and event.frame}
    return rows(run, lambda event: event.kind == "pin" and event.frame is not None and event.frame.line in copied)


def _moves(run: Run) -> Iterable[str]:
    return rows(run, lambda event: event.kind == "move")


CLAIMS: dict[str, Claim | Unobservable] = {
    "DVL201": Claim(_redundant, _moves),
    "DVL202": Claim(_invariant, _copied_again, watches=itself),
    "DVL203": Claim(_created),
    "DVL204": Claim(_waits, lambda run: rows(run, _waits_for_pinned), raises=True),
    "DVL205": Claim(
        _early, lambda run: [f"read early: the copy of row {row}" for row in run.read_early], during=late_copies
    ),
    "DVL206": Claim(_pinned_once, _pinned_for_one),
}
