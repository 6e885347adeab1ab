"""Fragments: files that Python cannot read, and nothing of their project names, as sketches and what was put aside."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Sequence

from devlint.check.filters import project_files
from devlint.finding import Finding
from devlint.rules.selection import PARSE_ERROR
from devlint.source.file_kinds import is_of_tests
from devlint.source.files import held

_NAMING = (".py", ".ipynb", ".yaml", ".yml", ".json", ".toml", ".cfg", ".ini", ".txt", ".sh", ".md", ".rst")


def unnamed(findings: Sequence[Finding]) -> list[Finding]:
    """Those of a run's findings that say that a file cannot be read which nobody would miss.

    A test is found by its folder; a notebook is there to be opened.
    """
    broken = (one for one in findings if one.code == PARSE_ERROR and one.filename.endswith(".py"))
    told = project_files.rooted(one for one in broken if not is_of_tests(one.filename))
    return [finding for finding, root in told if root and not _is_named(root, os.path.realpath(finding.filename))]


def _is_named(root: str, path: str) -> bool:
    """Whether a statement imports a file, or a text of the project has its name."""
    folder, name = os.path.split(path)
    own, around = (re.escape(one).encode() for one in (name.removesuffix(".py"), os.path.basename(folder)))
    beside = re.compile(rb"^\s*(?:from\s+\.?%b\s+import|(?:from\s+\.\s+)?import\b.*\b%b\b)" % (own, own), re.MULTILINE)
    elsewhere = re.compile(rb"\b%b[./]%b\b|\b%b\s+import\b[^\n]*\b%b\b" % (around, own, around, own))
    plain = re.compile(rb"\b%b\.py\b" % own)
    for other in itertools.islice(project_files.files(root, _NAMING), project_files.MOST):
        if os.path.realpath(other) == path:
            continue
        data = held(other) or b""
        near = os.path.dirname(os.path.realpath(other)) == folder
        if plain.search(data) or elsewhere.search(data) or (near and beside.search(data)):
            return True
    return False
