"""The tables of docs/confirmed.md, of what is kept beside the tests."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tests.recordings.comparing import Difference, differences
from tests.recordings.listed import HERE, Digest, Quantity, Recording, digests, recordings
from tests.recordings.operators import Operator, agrees, kept, table_agrees

_COLUMNS = ("recording", "card", "torch", "script; our program", "what it says, per step", "the audit", "line")
_OF_OPERATORS = """
    operator, calls, to the device, from it, waited, with what ran in it, the recorder believes, the table
""".strip().split(", ")
AUDITS = HERE / "audits.json"
"""What the audits of our programs said, by program and arguments."""
REASONS = HERE / "reasons.json"
"""Why a recording differs, or has no program of ours; and why an operator differs: by name."""


def audits() -> dict[str, tuple[Quantity, ...]]:
    """What audits said, by :func:`command`."""
    found = json.loads(AUDITS.read_text(encoding="utf-8"))
    return {
        key: tuple(Quantity(**{**each, "lines": tuple(each["lines"])}) for each in kept) for key, kept in found.items()
    }


def reasons() -> dict[str, str]:
    """By the name of a recording or an operator."""
    found: dict[str, str] = json.loads(REASONS.read_text(encoding="utf-8"))
    return found


def command(recording: Recording) -> str:
    """The program and its arguments."""
    return f"{recording.program}.py {recording.arguments}".strip()


def compared() -> Iterator[tuple[Recording, Digest, list[Difference] | None]]:
    """Each recording, with where an audit disagrees; ``None`` where none could be made."""
    said, audited = digests(), audits()
    for recording in recordings():
        digest = said[recording.name]
        yield recording, digest, differences(digest, audited[command(recording)]) if recording.program else None


def summary() -> str:
    """In a few sentences what was compared and found."""
    every = list(compared())
    both = [(recording, digest, found) for recording, digest, found in every if found is not None]
    agreeing = [recording for recording, _, found in both if not found]
    cards = {recording.card.removeprefix("8 x ") for recording, _, _ in both}
    quiet = sum(not digest.quantities for _, digest, found in both if not found)
    repositories = {recording.repository for recording, _, _ in every}
    programs = {recording.program for recording, _, _ in both}
    return (
        f"{len(every)} recordings of {len(repositories)} repositories were read; of {len(both)}, on {len(cards)} "
        f"kinds of cards, a program of ours does the same ({len(programs)} programs). The audit of a simulated device "
        f"agrees with {len(agreeing)} of these {len(both)} in every quantity; in {quiet} of those nothing crosses and "
        "nothing waits."
    )


def tables() -> str:
    """Both tables, in Markdown."""
    rows = [f"| {' | '.join(_COLUMNS)} |", "|---" * len(_COLUMNS) + "|"]
    why = reasons()
    for recording, digest, found in compared():
        link = f"https://github.com/{recording.repository}/blob/{recording.commit}/{recording.path.partition('!')[0]}"
        name = f"[{recording.name}]({link.replace(' ', '%20')})"
        said, verdict, line = _said(digest), _verdict(recording, found, why), _line(digest, found)
        script = f"{recording.script}; `{command(recording)}`" if recording.program else recording.script
        cells = (name, recording.card, recording.torch or "?", script, said, verdict, line)
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join([summary(), "", *rows, "", *_operators(why)]) + "\n"


def _said(digest: Digest) -> str:
    steps = max(digest.steps, 1)
    parts = [_quantity(each, steps) for each in digest.quantities] or ["nothing crosses, nothing waits"]
    return "; ".join(parts) + ("" if digest.steps else ", in all")


def _quantity(each: Quantity, steps: int) -> str:
    calls = f"{each.calls / steps:g}"
    size = f" ({each.bytes / steps:,.0f} B)" if each.bytes else ""
    if each.what == "wait" and each.name not in ("the device", "an event"):
        return f"{calls} {'wait' if calls == '1' else 'waits'} within `{each.name}`"
    if each.what == "wait":
        return f"{calls} {'wait' if calls == '1' else 'waits'} for {each.name}"
    what = each.what if each.what == "value read" else f"{each.memory} {each.what}".strip()
    return f"{calls} {what.replace('value', 'value' if calls == '1' else 'values')}{size}, the host {each.host}"


def _verdict(recording: Recording, found: list[Difference] | None, why: dict[str, str]) -> str:
    if found is None:
        return f"not audited: {why[recording.name]}"
    if not found:
        return "agrees"
    text = "; ".join(f"{each.what}: recorded {each.recorded}, audited {each.audited}" for each in found)
    return f"differs ({text}): {why[recording.name]}"


def _line(digest: Digest, found: list[Difference] | None) -> str:
    if not digest.stacks:
        return ""
    lines = sorted({line for each in digest.quantities for line in each.lines})
    return ("the same line: " if digest.exact else "the same function: ") * (found == []) + ", ".join(lines)


def _operators(why: dict[str, str]) -> Iterator[str]:
    every = kept()
    shown = [each for each in every if _crosses(each) or each.believed != "neither"]
    shown.sort(key=lambda each: (-each.waited, -each.within))
    rest = [each for each in every if each not in shown]
    calls = sum(each.calls for each in rest)
    yield f"{len(every)} operators of torch occur in the recordings. {len(rest)} of them, in {calls:,} calls, neither"
    yield "copied between host and device nor waited, and the recorder takes them for such. The others, with what"
    yield "devlint's table of functions says of them (what is not in it is a part of torch that nobody calls by name):"
    yield ""
    yield f"| {' | '.join(_OF_OPERATORS)} | |"
    yield "|---" * (len(_OF_OPERATORS) + 1) + "|"
    for each in shown:
        counts = (each.calls, each.to_the_device, each.from_the_device, each.waited, each.within)
        verdict = "agrees" if agrees(each) and table_agrees(each) else f"differs: {why[each.name]}"
        own = each.waited or each.believed != "neither"
        cells = (*map("{:,}".format, counts), each.believed if own else "(its parts)", each.tabled)
        yield f"| `{each.name}` | {' | '.join(cells)} | {verdict} |"


def _crosses(operator: Operator) -> bool:
    return bool(operator.to_the_device or operator.from_the_device or operator.within)
