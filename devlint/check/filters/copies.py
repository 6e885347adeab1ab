"""Copies of other projects within a project: they keep the licence that they came with."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from functools import cache

from devlint.check.filters import project_files
from devlint.finding import Finding, Severity
from devlint.source.files import held

_LICENCE = re.compile(r"(?:licen[cs]e|copying)(?:[-_][\w-]+)?(?:\.(?:txt|md|rst))?", re.IGNORECASE)
"""The names of files that say under which terms a folder may be used."""
_NOTICE = re.compile(rb"(?i)copyright\s+(?:\(c\)|\xc2\xa9|\d{4})([^\n]*)")
"""Who holds the rights on it."""
_ARCHIVE = re.compile(r".+-(?:main|master)")
"""How a folder is called into which somebody unpacked a repository as it was downloaded."""
_FORMAL = frozenset(b"all and authors contributors its inc ltd corporation present reserved rights team the".split())


def copied(findings: Sequence[Finding]) -> list[Finding]:
    """Those of a run's findings, but for errors, in a folder that somebody else licenses than the project around it.

    Or in one that was downloaded into it.
    """
    copy = cache(_is_copy)
    mild = (finding for finding in findings if finding.severity < Severity.ERROR)
    return [finding for finding in mild if copy(os.path.dirname(os.path.abspath(finding.filename)))]


def _is_copy(folder: str) -> bool:
    """Whether the nearest licence is another one than that of a folder further up in the same repository, or has none.

    A licence of the same holders is the project's own, whatever it says.
    """
    inner: set[bytes] = set()
    downloaded = False
    for _ in range(project_files.HIGHEST):
        try:
            names = os.listdir(folder)
        except OSError:
            return False
        if downloaded and project_files.begins(names):
            return True
        downloaded = downloaded or _ARCHIVE.fullmatch(os.path.basename(folder)) is not None
        licences = (held(os.path.join(folder, name)) for name in names if _LICENCE.fullmatch(name))
        texts = {text for text in licences if text}
        if inner and texts:
            same = {b" ".join(text.split()) for text in inner} & {b" ".join(text.split()) for text in texts}
            return not same and _holders(inner).isdisjoint(_holders(texts))
        if project_files.is_repository(names):
            return bool(inner)
        inner = inner or texts
        folder = os.path.dirname(folder)
    return False


def _holders(texts: Iterable[bytes]) -> set[bytes]:
    notices = (match[1].lower() for text in texts for match in _NOTICE.finditer(text))
    return {word for notice in notices for word in re.findall(rb"[^\W\d_]{3,}", notice)} - _FORMAL
