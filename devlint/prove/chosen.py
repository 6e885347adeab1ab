"""The findings of a file that are to be proven: those at a line."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from devlint.check.analysis import Analyzer
from devlint.check.discovery.target import Target
from devlint.check.outcome import AnalysisError
from devlint.check.project.view import view_of
from devlint.config.load import Resolver
from devlint.config.schema import ConfigError
from devlint.finding import Finding
from devlint.prove.claim import is_provable
from devlint.rules.selection import validate
from devlint.source.files import content
from devlint.source.text import ParseFailure
from devlint.source.tree import Source

_PLACE = re.compile(r"(?P<file>.+?):(?P<row>\d{1,9})")
_NEAREST = 3


def place_of(text: str) -> tuple[str, int]:
    """The file and the row of ``FILE:LINE``; a ConfigError says that it is none."""
    match = _PLACE.fullmatch(text)
    if match is None:
        raise ConfigError(f"expected FILE:LINE, not {text!r}")
    if match["file"].endswith(".ipynb"):
        raise ConfigError(f"{match['file']}: a notebook cannot be imported: export it as a script")
    return match["file"], int(match["row"])


def chosen(file: str, row: int, code: str | None = None) -> tuple[Source, list[Finding], list[Finding]]:
    """The file, the findings at the row, and all in the file: those that `check` reports, or has for who asks.

    A ConfigError says that there are none, or that the file cannot be read.
    """
    if code is not None and not is_provable(code):
        raise ConfigError(f"{code}: what can be proven are findings of DVL101 to DVL108")
    source, every = findings(file)
    found = [finding for finding in every if code in (None, finding.code)]
    there = [finding for finding in found if finding.span.row <= row <= finding.span.end_row]
    exact = [finding for finding in there if finding.span.row == row] or there
    told = [finding for finding in exact if not finding.asked] or exact
    if not told:
        what = code or "DVL1xx"
        raise ConfigError(f"no {what} finding at {file}:{row}{_nearest(found, row)}")
    return source, told, every


def findings(file: str) -> tuple[Source, list[Finding]]:
    """The file, and all findings in it that can be proven; a ConfigError says that it cannot be read."""
    try:
        data = content(file)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file}: {getattr(error, 'strerror', None) or error}") from error
    config = Resolver(validate).at(os.path.dirname(os.path.abspath(file)))
    project = view_of(Target(file, len(data), config))
    source = Source.parse(data, file, project.tree)
    if isinstance(source, ParseFailure):
        raise ConfigError(f"{file}:{source.row}:{source.column}: {source.message}")
    try:
        found = Analyzer(file, config, project).considered(data)
    except AnalysisError as error:
        raise ConfigError(f"{file}: {error}") from error
    return source, [finding for finding in found if is_provable(finding.code)]


def _nearest(found: Sequence[Finding], row: int) -> str:
    nearest = sorted(found, key=lambda finding: (finding.asked, abs(finding.span.row - row)))[:_NEAREST]
    rows = sorted({(finding.span.row, finding.code) for finding in nearest})
    return f"; the nearest: {', '.join(f'{code} at line {row}' for row, code in rows)}" if rows else ""
