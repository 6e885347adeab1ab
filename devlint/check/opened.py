"""A file's content as the Python code that is checked in it, and the way back: of a notebook, through its cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from devlint.finding import Finding


@dataclass(frozen=True, slots=True)
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
