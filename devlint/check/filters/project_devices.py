"""Projects by the devices that they name: those that change the default one, and those that never leave the host."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from functools import cache

from devlint.check.filters import project_files
from devlint.config.default_device import CHANGES
from devlint.finding import Finding, Severity
from devlint.rules.code.device_choice import says_where
from devlint.rules.registry import registry
from devlint.source.file_kinds import is_of_tests
from devlint.source.files import held

_WITHIN = re.compile(rb"^[ \t]*(?:async )?with\b[^\n]*\btorch\.device\((?![\"'](?:cpu|meta))", re.MULTILINE)
"""What changes the default device for the calls in a block, wherever they lead."""


def elsewhere(findings: Sequence[Finding]) -> list[Finding]:
    """Those of a run's findings that rest on the default device being the CPU, in projects that change it.

    A change for one block is enough for a hint: nobody knows what is called from there.
    """
    changes = cache(_changes)
    rooted = project_files.rooted(finding for finding in findings if finding.implied)
    return [finding for finding, root in rooted if root and changes(root, finding.severity == Severity.INFO)]


def _changes(root: str, hint: bool) -> bool:
    """Whether a file of a project changes the default device; one of its tests does it for other tests alone."""
    paths = (path for path in project_files.files(root, (".py",)) if not is_of_tests(path))
    texts = (held(path) or b"" for path in itertools.islice(paths, project_files.MOST))
    return any(CHANGES.search(text) or (hint and _WITHIN.search(text)) for text in texts)


def staying(findings: Sequence[Finding]) -> list[Finding]:
    """Those of a run's findings, but for errors, that hang on an accelerator, in projects that never name one."""
    rules, stays = registry(), cache(_stays)
    hanging = (one for one in findings if one.code in rules and rules[one.code].accelerated)
    rooted = project_files.rooted(one for one in hanging if one.severity < Severity.ERROR)
    return [finding for finding, root in rooted if root and stays(root)]


def _stays(root: str) -> bool:
    """Whether a project has a training loop, and no module of it, but for its tests, names a place to go to."""
    paths = (path for path in project_files.files(root, (".py",)) if not is_of_tests(path))
    trains = False
    for read, path in enumerate(itertools.islice(paths, project_files.MOST + 1)):
        text = (held(path) or b"").decode("utf-8", "replace")
        if read == project_files.MOST or says_where(text):
            return False
        trains = trains or "backward(" in text
    return trains
