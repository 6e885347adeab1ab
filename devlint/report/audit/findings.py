"""The findings of an audit and the mismatch that ended it, in the format of ``devlint check``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from devlint.finding import Finding, Place, Severity, Span
from devlint.record import Frame, Mismatch, Party, Record
from devlint.report.audit.code import Code
from devlint.report.evidence import seen
from devlint.report.terminal import one_line
from devlint.report.wording import listed, problems

_MOST_PARTIES = 6


def fatal(record: Record) -> Mismatch | None:
    """The mismatch of which the run died, if it did."""
    for process in record.processes:
        if process.ending.kind == "exception":
            for mismatch in reversed(process.mismatches):
                if mismatch.error and mismatch.error.partition("\n")[0] in process.ending.error:
                    return mismatch
    return None


Notes = list[tuple[str, str]]
"""What stands below the code of a finding: titles and texts."""


def explanation(record: Record, mismatch: Mismatch, code: Code, who: str = "the run") -> tuple[Finding, Notes]:
    """The mismatch that a run, or ``who`` it was, died of as a finding; its code is empty if no rule has judged it."""
    judged = next((found for found in record.findings or () if _is_about(found, mismatch)), None)
    frame = mismatch.frame or mismatch.via
    span = code.span(frame) if frame else Span(1, 1, 1, 1)
    named = [party for party in mismatch.parties if party.text]  # torch's message alone gives devices, and no names
    parties = named[:_MOST_PARTIES]
    shown = sorted(parties[1:], key=lambda party: party.device == parties[0].device)  # those who differ tell more
    devices = list(dict.fromkeys(party.device for party in mismatch.parties))
    met = "when tensors on {} met" if len(devices) > 1 else "of a tensor on {} that had to be elsewhere"
    inside = f" in `{mismatch.module}`" if mismatch.module else ""
    inside += f" ({mismatch.module_class})" if mismatch.module_class else ""
    origins = [
        (party.origin, f"`{party.text}`, on {party.device}")
        for party in parties
        if party.origin and party.origin != frame
    ]
    finding = Finding(
        code=str(judged["code"]) if judged else "",
        name=str(judged["name"]) if judged else "device-mismatch",
        severity=Severity.ERROR,
        message=f"{who} died {met.format(listed(devices))}{inside}" if devices else f"{who} died of it",
        filename=code.name(frame.file) if frame else "?",
        span=span,
        label=", ".join(f"`{party.text}` is on {party.device}" for party in [*parties[:1], *shown[:1]])
        or "they meet here",
        related=tuple(Place(code.span(origin), label, code.name(origin.file)) for origin, label in origins),
    )
    notes = [("where", "\n".join(map(_party, parties)))] if parties else []
    notes += [("via", code.place(mismatch.via))] if mismatch.via and mismatch.frame else []
    notes += [("torch", one_line(mismatch.error))]
    advice = judged.get("help") if judged and len(named) == len(mismatch.parties) else ""
    notes += [("help", str(advice))] if advice else []
    return finding, notes


def told(record: Record, died_of: Mismatch | None, code: Code) -> Iterator[tuple[Finding, Notes]]:
    """Yield what the run died of, then all else that was found, each with the notes below its code."""
    if died_of is not None:
        yield explanation(record, died_of, code)
    for found in record.findings or ():
        if died_of is None or not _is_about(found, died_of):
            yield _read(found, code)


def counted(record: Record, died_of: Mismatch | None) -> str:
    """The closing line; empty for a run that has not been judged.  ``died_of`` counts even if no rule names it."""
    if record.findings is None:
        return ""
    counts = Counter(Severity[str(found["severity"]).upper()] for found in record.findings)
    if died_of is not None and not any(_is_about(found, died_of) for found in record.findings):
        counts[Severity.ERROR] += 1
    if counts:
        return f"Found {problems(counts)}."
    if not any(process.backend for process in record.processes):
        return "Nothing was observed: the script did not import torch."
    if not any(process.events or process.models.outermost for process in record.processes):
        if record.source:
            return "Nothing was copied between the host and a device, and nothing waited for one."
        return "Nothing was observed: no module ran, and nothing was copied to or from a device."
    if record.source:
        return "No device problem was found in what the trace shows."
    died = any(process.ending.kind in ("exception", "unknown") for process in record.processes)
    return "No device problem was found up to there." if died else "No device problem was found."


def _read(found: dict[str, Any], code: Code) -> tuple[Finding, Notes]:
    file = str(found["filename"])
    finding = Finding(
        code=str(found["code"]),
        name=str(found["name"]),
        severity=Severity[str(found["severity"]).upper()],
        message=str(found["message"]),
        filename=code.name(file),
        span=span_of(found),
        label=str(found.get("label") or ""),
        related=tuple(
            Place(span_of(place), str(place["message"]), code.name(str(place.get("filename") or file)))
            for place in found.get("related") or ()
        ),
    )
    measured = seen(found.get("measured") or {})
    notes = [("seen", measured)] if measured else []
    notes += [("help", str(found["help"]))] if found.get("help") else []
    return finding, notes


def span_of(found: Mapping[str, Any]) -> Span:
    """The place of what a record has found."""
    start, end = found["location"], found["end_location"]
    return Span(start["row"], start["column"], end["row"], end["column"])


def _is_about(found: Mapping[str, Any], mismatch: Mismatch) -> bool:
    """Whether a finding is the verdict on this mismatch."""
    frame: Frame | None = mismatch.frame or mismatch.via
    if frame is None or found["name"] != "device-mismatch" or found["filename"] != frame.file:
        return False
    return bool(found["location"]["row"] <= frame.line <= found["end_location"]["row"])


def _party(party: Party) -> str:
    what = ", ".join(filter(None, [party.role if party.role != "variable" else "", party.example]))
    return f"`{party.text}`{f' ({what})' if what else ''} is on {party.device}{f': {party.why}' if party.why else ''}"
