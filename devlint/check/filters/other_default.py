"""Projects that change the default device somewhere: what is made without a device need not be on the CPU."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cache

from devlint.check.filters import project_files
from devlint.config.default_device import CHANGES
from devlint.finding import Finding
from devlint.source.file_kinds import is_of_tests
from devlint.source.files import held


def elsewhere(findings: Sequence[Finding]) -> list[Finding]:
    """Those of a run's findings that rest on the default device being the CPU, in projects that change it."""
    changes = cache(_changes)
    rooted = project_files.rooted(finding for finding in findings if finding.implied)
    return [finding for finding, root in rooted if root and changes(root, is_of_tests(finding.filename))]


def _changes(root: str, tests: bool) -> bool:
    """Whether a file of a project changes the default device; one of its tests does it for other tests alone."""
    paths = (path for path in project_files.files(root, (".py",)) if tests or not is_of_tests(path))
    return any(CHANGES.search(held(path) or b"") for path in itertools.islice(paths, project_files.MOST))
