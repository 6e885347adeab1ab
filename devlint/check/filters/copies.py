"""Copies of other projects within a project: they keep the licence that they came with."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import cache

from devlint.check.filters import project_files
from devlint.finding import Finding, Severity
from devlint.source.files import held

_LICENCE = re.compile(r"(?:licen[cs]e|copying)(?:[-_][\w-]+)?(?:\.(?:txt|md|rst))?", re.IGNORECASE)
"""The names of files that say under which terms a folder may be used."""
_PACKAGE = "setup.py"
"""What is installed from a folder is worked on there, whoever wrote it first."""


def copied(findings: Sequence[Finding]) -> list[Finding]:
    """Those of a run's findings, but for errors, in a folder with another licence than the project around it."""
    copy = cache(_is_copy)
    mild = (finding for finding in findings if finding.severity < Severity.ERROR)
    return [finding for finding in mild if copy(os.path.dirname(os.path.abspath(finding.filename)))]


def _is_copy(folder: str) -> bool:
    """Whether the nearest licence is another one than that of a folder further up in the same repository."""
    inner: set[bytes] = set()
    for _ in range(project_files.HIGHEST):
        try:
            names = os.listdir(folder)
        except OSError:
            return False
        licences = (held(os.path.join(folder, name)) for name in names if _LICENCE.fullmatch(name))
        texts = {b" ".join(text.split()) for text in licences if text}
        if inner and texts:
            return inner.isdisjoint(texts)
        if (texts and _PACKAGE in names) or project_files.is_repository(names):
            return False
        inner = inner or texts
        folder = os.path.dirname(folder)
    return False
