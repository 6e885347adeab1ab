"""Judgement: the rules of `devlint check`, applied to what an audit saw."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

from devlint.auditor.judgement.locator import Locator
from devlint.auditor.judgement.observations import observed
from devlint.auditor.judgement.observations.measure import grouped
from devlint.check.suppressions import suppressions
from devlint.config.load import Resolver
from devlint.config.schema import Config
from devlint.finding import Finding
from devlint.record import Frame, Process, Record
from devlint.report.evidence import measured
from devlint.report.formats.json import as_object
from devlint.rules.selection import graded, ignored_in, selected, validate
from devlint.rules.verdicts import verdicts
from devlint.sites.base import Site
from devlint.source.tree import Source

_LONGEST = 12
"""More lines than this of one expression say no more than its first ones."""
_AROUND = 5
"""So many lines before and after are kept, too: a report is read where the code is not at hand."""


def judge(record: Record, config: Config | Resolver | None = None) -> Record:
    """The record with its findings, and with the code that it speaks of.

    Each file is judged as its configuration has it, given or found as `devlint check` finds it; comments in the code
    silence what they name.  A configuration that cannot be read raises :class:`ConfigError`.
    """
    resolver = config if isinstance(config, Resolver) else Resolver(validate, config)
    locator = Locator(record.sources)
    sites = grouped(observed(record, locator), lambda site: locator.home(site.node))
    judged = [verdict for source in sites for verdict in _judge(source, sites[source], resolver, record, locator)]
    judged.sort(key=lambda verdict: verdict[0].sort_key)
    findings = tuple({**as_object(finding), "measured": measured(site.measured)} for finding, site in judged)
    sources = _sources(record, [finding for finding, _ in judged], locator)
    # What was known before is of the files that ran; they may have changed since.
    known = record.digests if record.findings is not None else {}
    observed_in = (observation.file for process in record.processes for observation in process.observations)
    files = dict.fromkeys((*sources, *observed_in))
    present = {file: digest for file in files if (digest := locator.digest(file))}
    return replace(record, findings=findings, digests=known or present, sources=sources)


def _judge(
    source: Source, sites: list[Site], resolver: Resolver, record: Record, locator: Locator
) -> list[tuple[Finding, Site]]:
    """What the rules say of one file."""
    typed = source.filename.startswith("<")
    config = resolver.at((record.directory or os.getcwd()) if typed else os.path.dirname(source.filename))
    ignored = ignored_in(source.filename, config) if config.per_file_ignores and not typed else frozenset()
    rules = [rule for rule in selected(config) if rule.observed and rule.code not in ignored]
    found = verdicts(source, rules, sites, config.target_torch, locator.home, config.latest_torch)
    comments = suppressions(source.text, bool(found))
    kept = {id(finding) for finding in comments.apply(finding for finding, _ in found)}
    return [(graded([finding], config)[0], site) for finding, site in found if id(finding) in kept]


def _sources(record: Record, findings: list[Finding], locator: Locator) -> dict[str, dict[int, str]]:
    """The lines of code at every place that the record or a finding names."""
    lines: dict[str, dict[int, str]] = {file: dict(known) for file, known in record.sources.items()}

    def keep(file: str, first: int, last: int) -> None:
        known = locator.lines(file, first - _AROUND, min(last, first + _LONGEST - 1) + _AROUND)
        lines[file] = {**known, **lines.get(file, {})}

    for frame in dict.fromkeys(frame for process in record.processes for frame in _frames(process)):
        if frame is not None:
            keep(frame.file, frame.line, frame.end_line or frame.line)
    for finding in findings:
        keep(finding.filename, finding.span.row, finding.span.end_row)
        for place in finding.related:
            keep(place.filename or finding.filename, place.span.row, place.span.end_row)
    return {file: dict(sorted(known.items())) for file, known in lines.items() if known}


def _frames(process: Process) -> Iterator[Frame | None]:
    """Every place that a process names."""
    for event in process.events:
        yield from (event.frame, event.via)
    for mismatch in process.mismatches:
        yield from (mismatch.frame, mismatch.via, *(party.origin for party in mismatch.parties))
    for stray in process.strays:
        yield from (stray.frame, *stray.moved)
    for optimizer in process.optimizers:
        yield from (optimizer.frame, optimizer.moved)
    yield from (loader.frame for loader in process.loaders)
    yield from (wrapper.frame for wrapper in process.wrappers)
