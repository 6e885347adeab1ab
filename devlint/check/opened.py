"""A file's content as the Python code that is checked in it, and the way back: of a notebook, through its cells."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import replace

from devlint.check.suppressions import suppressions
from devlint.config.schema import Config
from devlint.finding import Finding, Severity, Span
from devlint.immutable import immutable
from devlint.immutable import replace as exchanged
from devlint.rules.registry import registry
from devlint.rules.selection import PARSE_ERROR, active_rules, asked, graded, graded_codes
from devlint.rules.subsumption import unasked
from devlint.source.file_kinds import is_vendored
from devlint.source.text import ParseFailure

_IMPORT = re.compile(r"^[ \t]*(?:import|from)[ \t]+\w", re.MULTILINE)
NOTEBOOK = ".ipynb"
KEPT = re.compile(rb"^[ \t]*[!%]%?\w", re.MULTILINE)
"""A line of IPython, as a notebook that was exported may have kept it."""
POINTER = "version https://git-lfs.github.com/spec/"
"""How a file begins that Git LFS puts in the place of another, as long as nobody fetches that."""
PYTHON = f"Python {sys.version_info.major}.{sys.version_info.minor}"


@immutable(frozen=True, slots=True)
class Opened:
    """A file of Python: its content is its code."""

    code: bytes

    def placed(self, findings: Sequence[Finding], code: bytes | None = None) -> list[Finding]:
        """The findings in the code, which may be another one by now, each at its place in the file."""
        return [*findings]

    def located(self, findings: Sequence[Finding], code: bytes | None = None) -> list[Finding]:
        """All findings in the file, in order: those in the code, and what is said of parts that are none."""
        return self.placed(findings, code)

    def file(self, code: bytes) -> bytes:
        """The content of the file with other code; an UnfixableError says why that cannot be written."""
        return code


def in_project(failure: ParseFailure, config: Config) -> ParseFailure:
    """The same failure, as one that a newer Python may not have where the project requires a newer one."""
    required = config.required_python
    if not failure.of_syntax or failure.newer or required is None or required <= sys.version_info[:2]:
        return failure
    more = f": the project requires Python {required[0]}.{required[1]}, devlint runs on {PYTHON.split()[1]}"
    return exchanged(failure, message=f"{failure.message}{more}", newer=True)


def parse_errors(
    failures: Sequence[tuple[ParseFailure, Span]],
    help_text: str,
    filename: str,
    config: Config,
    text: str = "",
) -> list[Finding]:
    """DVL900 of code without a syntax tree, unless the configuration or a comment for all of ``text`` leaves it out."""
    rule = registry().get(PARSE_ERROR) if failures else None
    if rule is None or rule not in active_rules(filename, config):
        return []
    # the same mistake in several cells, of one template or one replacement gone wrong, is one
    found = [
        Finding(
            *(PARSE_ERROR, rule.name, _severity(failure, filename), failure.message, filename, span),
            help=help_text,
            cause=failure.message,
            # what is only there to be read, or filled in, nobody mends
            asked=failure.elided
            or (failure.unfinished and filename.endswith(NOTEBOOK))
            # the project runs on one that knows it, as far as it says
            or (failure.newer and not _is_allowed(config)),
        )
        for failure, span in failures
    ]
    chosen = PARSE_ERROR in asked(config)
    unwanted = _is_of_another_library(text) or text.startswith(POINTER) or is_vendored(filename)
    found = [replace(finding, asked=not chosen and (unwanted or finding.asked)) for finding in found]
    comments = suppressions(text, has_findings=False)
    # where the tokens end early, lines mean little
    comments.by_row = {None: comments.by_row.get(None, [])}
    # hints are one for all files, as those of other rules
    wanted = asked(config) | graded_codes(config)
    return graded([unasked(finding, wanted) for finding in comments.apply(found)], config)


def _is_allowed(config: Config) -> bool:
    """Whether the project says that it runs on the Python which devlint runs on."""
    return config.required_python is not None and config.required_python <= sys.version_info[:2]


def _severity(failure: ParseFailure, filename: str) -> Severity:
    """A hint where the program may run all the same: on a Python of its own, or without the cell."""
    cell = failure.of_syntax and filename.endswith(NOTEBOOK)
    return Severity.INFO if failure.newer or failure.elided or cell else Severity.ERROR


def _is_of_another_library(text: str) -> bool:
    """Whether code imports something, and never names torch: there was nothing to check in it."""
    return "torch" not in text and _IMPORT.search(text) is not None
