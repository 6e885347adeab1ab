"""One file of a run that fixes: read, mend, and write it or say what would be written."""

from __future__ import annotations

from devlint.check.discover import Target
from devlint.check.engine import Fixing, Outcome, check_source, with_content
from devlint.check.fixes.diff import unified
from devlint.check.fixes.mend import mend
from devlint.check.project import surroundings
from devlint.source.output import write


def fix_target(fixing: Fixing, target: Target) -> Outcome:
    """Fix one file; whatever goes wrong is part of the outcome."""
    return with_content(target, lambda data: _outcome(fixing, target, data))


def _outcome(fixing: Fixing, target: Target, data: bytes) -> Outcome:
    around = surroundings(target)
    mended = mend(data, target.path, target.config, fixing.unsafe, fixing.narrowing, around)
    if mended.data == data:
        return Outcome(target.path, mended.findings, unfixed=mended.failure)
    if not fixing.write:
        return Outcome(target.path, mended.findings, fixed=mended.fixed, diff=unified(target.path, data, mended.data))
    try:
        write(target.path, mended.data, data)
    except OSError as error:
        found = tuple(check_source(data, target.path, target.config, around))
        return Outcome(target.path, found, unfixed=f"nothing was fixed: {error.strerror or error}")
    return Outcome(target.path, mended.findings, fixed=mended.fixed)
