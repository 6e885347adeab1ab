"""What ``devlint report`` does: read records, judge what has not been judged, print."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace

from devlint.auditor.judgement.export import Exports
from devlint.auditor.running import console, storage
from devlint.auditor.running.console import say
from devlint.auditor.running.merge import merge
from devlint.config.load import Resolver
from devlint.config.schema import ConfigError
from devlint.record import Record
from devlint.report.progress import Progress
from devlint.rules.selection import validate

EXIT_SHOWN, EXIT_FAILED = 0, 2


def show(files: Sequence[str], quiet: bool = False, exports: Exports | None = None) -> int:
    """Print the report of the files, or of the latest run, or write the files that are wanted of it instead.

    The result is the exit code.
    """
    try:
        if exports is not None:
            exports.check(read=files)
        records = read(files) if files else storage.latest()
        if any(record.command != records[0].command for record in records):
            raise ConfigError("these are records of different runs, which make no report together")
        if (twice := _twice(files, records)) is not None:
            together = "records of different runs make no report together, but --compare lays two side by side"
            raise ConfigError(f"{twice}: {together}")
    except (ConfigError, storage.RecordError) as error:
        say("error", str(error))
        return EXIT_FAILED
    record = merge(records)
    if record.findings is None:
        record = judged(record, Resolver(validate))
    if exports is not None and exports.any():
        return EXIT_SHOWN if exports.write(record, quiet) else EXIT_FAILED
    if failure := console.show(record, sys.stdout, quiet):
        say("error", f"the report cannot be written: {failure}")
        return EXIT_FAILED
    return EXIT_SHOWN


def read(files: Sequence[str]) -> list[Record]:
    """The records of files, with a progress bar where one takes long; raises ``storage.RecordError``."""
    records = []
    for file in files:
        with Progress(sys.stderr.isatty(), f"reading {os.path.basename(file)}", counted=False) as progress:
            records.append(storage.read(file, progress))
    return records


def _twice(files: Sequence[str], records: Sequence[Record]) -> str | None:
    """Two files that have the same rank, which no run has twice; a file that is named twice is one."""
    holder: dict[int, int] = {}
    for number, record in enumerate(records):
        if not files or record in records[:number]:
            continue
        for rank in sorted({process.rank for process in record.processes if process.rank is not None}):
            if rank in holder:
                return f"both {files[holder[rank]]} and {files[number]} have rank {rank}"
            holder[rank] = number
    return None


def show_comparison(files: Sequence[str], output_format: str = "text") -> int:
    """Print what has changed from the first of two records to the second; the result is the exit code."""
    from devlint.report.compare import compare, json, text

    try:
        records = read(files)
    except storage.RecordError as error:
        say("error", str(error))
        return EXIT_FAILED
    resolver = Resolver(validate)
    before, after = (record if record.findings is not None else judged(record, resolver) for record in records)
    found = compare(before, after)
    if output_format == "json":
        failure = console.write(sys.stdout, f"{json.render(found)}\n")
    else:
        failure = console.write_pieces(sys.stdout, lambda color, width: text.render(found, color, width))
    if failure:
        say("error", f"the comparison cannot be written: {failure}")
        return EXIT_FAILED
    return EXIT_SHOWN


def judged(record: Record, resolver: Resolver) -> Record:
    """The record with findings and advice; without them, and with a line, where devlint fails."""
    from devlint.auditor.judgement.advice import advise
    from devlint.auditor.judgement.judge import judge

    try:
        record = judge(record, resolver)
        return replace(record, advice=advise(record))
    except Exception as error:
        say("error", f"devlint failed to judge the run: {type(error).__name__}: {error}")
        return record
