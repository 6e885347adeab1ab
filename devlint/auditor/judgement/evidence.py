"""The record of a run laid beside the findings of `devlint check`: what is confirmed, contradicted, not reached."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

from devlint.auditor.judgement.judge import judge
from devlint.auditor.judgement.observations.measure import Seen, measure
from devlint.auditor.judgement.teaching import observations
from devlint.auditor.profile.reading import OF_THE_DEF
from devlint.auditor.running import storage
from devlint.config.messages import leads_out
from devlint.config.schema import Config, ConfigError, RuleLayer
from devlint.finding import ENOUGH_STEPS, Evidence, Finding, Measurement, Span
from devlint.record import Event, Frame, Loader, Process, Record
from devlint.report.audit.findings import span_of
from devlint.report.audit.table import Cost
from devlint.report.formats.exchange import has_file
from devlint.report.progress import Progress
from devlint.rules.registry import registry
from devlint.sites import proof
from devlint.sites.observed import Observations
from devlint.sites.proof import CONFIRMED, CONTRADICTED, NOT_REACHED, UNDECIDED, VERDICTS, Traces
from devlint.source.files import held
from devlint.source.text import decode, split_lines

_CHANGED = "the file has changed since the run"
_ELSEWHERE = "the run was of other files"
_NOT_SHOWN = "no run shows it"
_NOT_TRACED = "a trace of the profiler does not show it"
_NOTEBOOK = "a record speaks of files, not of cells"
_NOTHING_TELLS = "the code ran, and nothing that was seen tells"
_NOTHING = Traces()


class _Left(NamedTuple):
    """All that a run left at one place."""

    events: Sequence[Seen] = ()
    loaders: Sequence[Loader] = ()
    batches: Sequence[Seen] = ()
    """The copies to a device of what these loaders gave; in a trace, which knows no loaders, those in the lines where
    the finding says that their batches are copied."""
    optimizers: Sequence[Any] = ()
    wrappers: Sequence[Any] = ()
    mismatches: Sequence[Any] = ()
    traced: bool = False
    """Whether the profiler saw this."""

    def copies(self, inward: bool | None = None) -> list[Event]:
        """The copies between host and device; to the device, from it, or all."""
        found = [seen.event for seen in self.events if seen.event.kind == "copy"]
        return [event for event in found if inward is None or (event.source == "cpu") is inward]

    def kinds(self, kind: str) -> list[Event]:
        """The events of another kind."""
        return [seen.event for seen in self.events if seen.event.kind == kind]


def _always_new(left: _Left) -> bool:
    if left.traced:
        return False  # whether a copy repeats another one is not in a trace
    copies = left.copies(inward=True)
    return any(event.steps >= ENOUGH_STEPS for event in copies) and not any(event.repeats for event in copies)


_MEANING: Mapping[str, Callable[[_Left], object]] = {
    proof.COPY: lambda left: left.copies(),
    proof.UPLOAD: lambda left: left.copies(inward=True),
    proof.ALWAYS_NEW: _always_new,
    proof.REPEATED: lambda left: any(event.repeats for event in left.copies(inward=True)),
    proof.FROM_PAGEABLE: lambda left: any(event.pinned is False for event in left.copies(inward=True)),
    proof.WAITED_FOR_PINNED: lambda left: any(event.pinned and event.blocking for event in left.copies(inward=True)),
    proof.DOWNLOAD: lambda left: left.copies(inward=False),
    proof.READ_TOO_EARLY: lambda left: any(event.unwaited for event in left.copies(inward=False)),
    proof.ONLY_IN_PLACE: lambda left: left.kinds("move") and not left.copies(),
    proof.MOVE: lambda left: left.kinds("move"),
    proof.PIN: lambda left: left.kinds("pin"),
    proof.WAIT: lambda left: any(seen.event.waits for seen in left.events),
    proof.WAIT_IN_STEP: lambda left: any(seen.event.waits and seen.event.phase == "train" for seen in left.events),
    proof.CALL: lambda left: left.kinds("call"),
    proof.CALL_IN_STEP: lambda left: any(event.phase == "train" for event in left.kinds("call")),
    proof.RAN: lambda left: left.events and not left.mismatches,
    proof.MISMATCH: lambda left: left.mismatches,
    proof.LOADER: lambda left: left.loaders,
    proof.PINNED_BATCHES: lambda left: (
        any(loader.pinned for loader in left.loaders)
        or (left.traced and left.batches and all(seen.event.pinned for seen in left.batches))
    ),
    proof.PAGEABLE_BATCHES: lambda left: any(seen.event.pinned is False for seen in left.batches),
    proof.HOST_BATCHES: lambda left: any(loader.device == "cpu" for loader in left.loaders),
    proof.WITHOUT_WORKERS: lambda left: any(loader.training and not loader.workers for loader in left.loaders),
    proof.WITH_WORKERS: lambda left: left.loaders and all(loader.workers for loader in left.loaders),
    proof.OPTIMIZER: lambda left: left.optimizers,
    proof.STAYED: lambda left: any(one.stepped_on and one.stepped_on == one.made_on for one in left.optimizers),
    proof.WRAPPER: lambda left: left.wrappers,
}


class Run:
    """The record of a run as a witness for findings."""

    def __init__(self, record: Record, name: str = "the run") -> None:
        """``record``, of that name, is judged anew, by all rules, whatever the configuration was when it was kept."""
        self._name = name
        self._record = judge(record, Config().selecting(RuleLayer(("ALL",))))
        self._files: dict[str, tuple[str, bool]] = {}

    @classmethod
    def read(cls, file: str) -> Run:
        """The run whose record a file holds; what is wrong with it is a ConfigError."""
        try:
            with Progress(sys.stderr.isatty(), f"reading {os.path.basename(file)}", counted=False) as progress:
                record = storage.read(file, progress)
        except storage.RecordError as error:
            raise ConfigError(f"--evidence: {error}") from error
        try:
            return cls(record, os.path.basename(file))
        except Exception as error:
            # Whatever else somebody's file can hold.
            reason = f"{type(error).__name__}: {error}"
            raise ConfigError(f"--evidence: {file}: the run cannot be judged: {reason}") from error

    def weigh(self, findings: Iterable[Finding], contents: Mapping[str, bytes]) -> list[Finding]:
        """The findings with what the run says of each, what it confirms and what costs most first.

        ``contents`` are those of files that are not read from the disk, by name.
        """
        weighed = [_weighed(finding, self._evidence(finding, contents)) for finding in findings]
        return sorted(weighed, key=_rank)

    def observations(self, filename: str, data: bytes | None = None) -> Observations | None:
        """What the run has seen of a file, or of its content; ``None`` if that is nothing, or it has changed since."""
        if not any(process.observations for process in self._record.processes):
            return None
        name, same = self._find(filename, {} if data is None else {filename: data})
        return observations(self._record, name, self._name) if same and name in self._record.digests else None

    def _evidence(self, finding: Finding, contents: Mapping[str, bytes]) -> Evidence:
        rule = registry().get(finding.code)
        claim = (rule.proof if rule is not None else None) or _NOTHING
        judged = rule is not None and rule.observed
        # What runs in a notebook, or is typed, has no file in a record.
        if not judged and claim == _NOTHING:
            return Evidence(UNDECIDED, _NOT_SHOWN)
        if finding.span.cell or not has_file(finding.filename):
            return Evidence(UNDECIDED, _NOTEBOOK)
        if finding.filename not in self._files:
            self._files[finding.filename] = self._find(finding.filename, contents)
        name, same = self._files[finding.filename]
        if not same:
            return Evidence(UNDECIDED, _CHANGED)
        found = self._judged(finding, name)
        if found is not None:
            told = found.get("measured")
            measured = Measurement(**{**told, "ranks": tuple(told["ranks"])}) if told else None
            return Evidence(CONFIRMED, measured=measured)
        left = self._left(finding, name)
        seen = left.batches or left.events
        measured = _measured(seen)
        for verdict, words in ((CONTRADICTED, claim.contradict), (CONFIRMED, claim.confirm)):
            word = next((word for word in words if _MEANING[word](left)), None)
            if word is not None:
                return Evidence(verdict, f"there was {word}" if verdict == CONTRADICTED else "", measured)
        if not claim.left or any(_MEANING[word](left) for word in claim.left):
            return Evidence(UNDECIDED, _NOTHING_TELLS if claim.left else _NOT_SHOWN, measured)
        if self._record.source:
            return Evidence(UNDECIDED, _NOT_TRACED)  # it knows neither loaders nor optimizers, and names no calls
        return Evidence(NOT_REACHED) if self._is_here else Evidence(UNDECIDED, _ELSEWHERE)

    @cached_property
    def _is_here(self) -> bool:
        """Whether the run was of code that is here: else that nothing of a file was seen says nothing."""
        frames = (event.frame for process in self._record.processes for event in process.events)
        files = {frame.file for frame in frames if frame is not None}
        return not files or any(
            os.path.exists(file) or os.path.exists(_relative(file, self._record.directory) or file) for file in files
        )

    def _find(self, filename: str, contents: Mapping[str, bytes]) -> tuple[str, bool]:
        """What the record calls a file, and whether it is what it was; one that it does not know is."""
        record = self._record
        data = contents.get(filename)
        data = held(filename) if data is None else data
        if data is None:
            return filename, False
        digest, absolute = hashlib.sha256(data).hexdigest(), os.path.abspath(filename)
        known = {*record.digests, *record.sources}
        here = os.path.relpath(absolute).replace(os.sep, "/")
        # The run may have been elsewhere, so that only what follows its directory is the same.
        elsewhere = [name for name in known if _relative(name, record.directory) == here and not leads_out(here)]
        name = next((name for name in (absolute, *elsewhere) if name in known), None)
        if name is None:
            return absolute, True
        if name in record.digests:
            return name, record.digests[name] == digest
        text = decode(data)
        lines = split_lines(text) if isinstance(text, str) else []
        return name, all(lines[row - 1 : row] == [line] for row, line in record.sources[name].items())

    def _judged(self, finding: Finding, name: str) -> dict[str, Any] | None:
        """What the same rule found in the run at the same place."""
        for found in self._record.findings or ():
            if found["code"] == finding.code and found["filename"] == name and _overlap(span_of(found), finding.span):
                return found
        return None

    def _left(self, finding: Finding, name: str) -> _Left:
        def here(frame: Frame | None) -> bool:
            return frame is not None and frame.file == name and _overlap(_span(frame), finding.span)

        lines = [place.span for place in finding.related if not place.filename] if self._record.source else []

        def copied(process: Process, frame: Frame | None) -> bool:
            if frame is None or frame.file != name or OF_THE_DEF in process.notes:
                return False
            return any(_overlap(_span(frame), line) for line in lines)

        parts: dict[str, list[Any]] = {field: [] for field in _Left._fields if field != "traced"}
        for process in self._record.processes:
            seen = [Seen(process, event) for event in process.events]
            parts["events"] += [entry for entry in seen if here(entry.event.frame)]
            numbers = {number for number, loader in enumerate(process.loaders) if here(loader.frame)}
            parts["loaders"] += [process.loaders[number] for number in numbers]
            parts["batches"] += [
                entry
                for entry in seen
                if entry.event.kind == "copy" and entry.event.source == "cpu"
                if entry.event.loader in numbers or copied(process, entry.event.frame)
            ]
            parts["optimizers"] += [one for one in process.optimizers if here(one.frame)]
            parts["wrappers"] += [one for one in process.wrappers if here(one.frame)]
            parts["mismatches"] += [one for one in process.mismatches if here(one.frame)]
        return _Left(**parts, traced=bool(self._record.source))


def _relative(name: str, directory: str) -> str:
    return name[len(directory) :].lstrip("/\\").replace("\\", "/") if directory and name.startswith(directory) else ""


def _span(frame: Frame) -> Span:
    """The place of a frame; all of its line where no more is known."""
    if frame.column is None or frame.end_line is None or frame.end_column is None:
        return Span(frame.line, 0, frame.line + 1, 0)
    return Span(frame.line, frame.column + 1, frame.end_line, frame.end_column + 1)


def _overlap(one: Span, other: Span) -> bool:
    first = max((one.row, one.column), (other.row, other.column))
    return first < min((one.end_row, one.end_column), (other.end_row, other.end_column))


def _measured(seen: Sequence[Seen]) -> Measurement | None:
    """The sum of events, which is none per step where they happened in no step."""
    if not seen:
        return None
    measured = measure(seen)
    return measured if measured.steps else replace(measured, per_step=0.0, bytes_per_step=0.0)


def _weighed(finding: Finding, evidence: Evidence) -> Finding:
    """A finding with what a run says of it: what was inferred, and happened, is as grave as what the code shows."""
    proven = finding.unproven if evidence.verdict == CONFIRMED else None
    return replace(finding, evidence=evidence, severity=proven or finding.severity)


def _rank(finding: Finding) -> tuple[int, float, tuple[str, int, Span, str]]:
    evidence = finding.evidence or Evidence(UNDECIDED)
    measured = evidence.measured
    weight = Cost(measured.calls, measured.bytes, measured.seconds).weight() if measured is not None else 0.0
    return VERDICTS.index(evidence.verdict), -weight, finding.sort_key
