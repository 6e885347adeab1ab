"""What ``devlint report`` does: read records, judge what has not been judged, print."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

from devlint.auditor.running import console, storage
from devlint.auditor.running.console import say
from devlint.auditor.running.merge import merge
from devlint.config import Resolver
from devlint.record import Record

EXIT_SHOWN, EXIT_FAILED = 0, 2


def show(files: Sequence[str], quiet: bool = False) -> int:
    """Print the report of the files, or of the latest run; the result is the exit code."""
    try:
        records = [storage.read(file) for file in files] if files else storage.latest()
    except storage.RecordError as error:
        say("error", str(error))
        return EXIT_FAILED
    if any(record.command != records[0].command for record in records):
        say("error", "these are records of different runs, which make no report together")
        return EXIT_FAILED
    record = merge(records)
    if record.findings is None:
        record = judged(record, Resolver())
    if failure := console.show(record, sys.stdout, quiet):
        say("error", f"the report cannot be written: {failure}")
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
