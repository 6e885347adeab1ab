"""Copies of other projects within a project: they keep the licence that they came with."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from functools import cache

from devlint.check.filters import project_files, publishing
from devlint.finding import Finding, Severity
from devlint.flow.catalog.modules import OFTEN_COPIED
from devlint.source.files import held

_LICENCE = re.compile(r"(?:licen[cs]e|copying)(?:[-_][\w-]+)?(?:\.(?:txt|md|rst))?", re.IGNORECASE)
"""The names of files that say under which terms a folder may be used."""
_NOTICE = re.compile(rb"(?i)copyright\s+(?:\(c\)|\xc2\xa9|\d{4})([^\n]*)")
"""Who holds the rights on it."""
_ARCHIVE = re.compile(r".+-(?:main|master)")
"""How a folder is called into which somebody unpacked a repository as it was downloaded."""
_FORMAL = frozenset(b"all and authors contributors its inc ltd corporation present reserved rights team the".split())


def copied(findings: Sequence[Finding]) -> list[Finding]:
    """Those of a run's findings in a library's package that a project keeps whole: its authors mend it there.

    And those, but for errors, in a folder that somebody else licenses than the project around it, or that was
    downloaded into it.
    """
    library, copy = cache(_is_of_library), cache(_is_copy)
    folders = ((finding, os.path.dirname(os.path.abspath(finding.filename))) for finding in findings)
    return [
        finding for finding, folder in folders
        if library(folder) or (finding.severity < Severity.ERROR and copy(folder))
    ]  # fmt: skip


def _is_of_library(folder: str) -> bool:
    """Whether a folder lies in the package of a well-known library, and the project around that is not this library."""
    found = ""
    for _ in range(project_files.HIGHEST):
        try:
            names = os.listdir(folder)
        except OSError:
            return False
        name = os.path.basename(folder)
        found = name if name in OFTEN_COPIED and "__init__.py" in names else found
        if found and project_files.begins(names) and name != found:
            # whoever keeps the files of a fork keeps its setup, too, and not what its README says
            own = found in publishing.declared(folder, names) and publishing.root(folder)[1]
            return found not in name.lower().replace("-", "_") and not own
        folder = os.path.dirname(folder)
    return False


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
