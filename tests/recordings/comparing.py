"""A recording against the audit of our program, quantity by quantity."""

from __future__ import annotations

from dataclasses import dataclass

from tests.recordings.listed import Digest, Quantity


@dataclass(frozen=True)
class Difference:
    """What does not agree, and what each side says."""

    what: str
    recorded: str
    audited: str


def differences(recorded: Digest, audited: tuple[Quantity, ...]) -> list[Difference]:
    """Where they disagree; a line is compared if the trace has lines, the memory if it tells it."""
    told = any(each.memory for each in recorded.quantities)
    here, there = _sums(recorded.quantities, told), _sums(audited, told)
    found = []
    for key in sorted({*here, *there}):
        ours, theirs = there.get(key), here.get(key)
        if ours is None or theirs is None or (ours[:2] != theirs[:2]):
            found.append(Difference(" ".join(filter(None, key)), _amount(theirs), _amount(ours)))
        elif recorded.stacks and ours[2] != theirs[2]:
            found.append(Difference("line of " + " ".join(filter(None, key)), _lines(theirs), _lines(ours)))
    return found


_Sum = tuple[int, int, tuple[str, ...]]


def _sums(quantities: tuple[Quantity, ...], told: bool) -> dict[tuple[str, ...], _Sum]:
    sums: dict[tuple[str, ...], _Sum] = {}
    for each in quantities:
        # without stacks a trace names the outermost operator in which the host waited, an audit the innermost
        name = each.name if each.name in ("", "the device", "an event") else "an operator"
        key = (each.what, name, each.memory if told else "", each.host)
        calls, size, lines = sums.get(key, (0, 0, ()))
        sums[key] = calls + each.calls, size + each.bytes, tuple(sorted({*lines, *each.lines}))
    return sums


def _amount(found: _Sum | None) -> str:
    if found is None:
        return "none"
    return f"{found[0]:,}" + (f", {found[1]:,} bytes" if found[1] else "")


def _lines(found: _Sum) -> str:
    return ", ".join(found[2]) or "none"
