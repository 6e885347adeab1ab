"""What the formats for other programs have in common: paths, identities and columns as those programs count them."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from devlint.config.messages import leads_out
from devlint.finding import Edit, Finding, Fix, Span
from devlint.report.base import Report
from devlint.source.text import extract

Width = Callable[[str], int]
"""In how many units of a format a text is counted."""


def utf16(text: str) -> int:
    """The length in code units of UTF-16, in which most editors and viewers count."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def utf8(text: str) -> int:
    """The length in bytes of UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def counted(report: Report, filename: str, span: Span, width: Width) -> Span:
    """A span whose columns count the units of a format instead of characters; they still begin with 1."""
    lines = report.lines(filename)

    def column(row: int, column: int) -> int:
        line = lines[row - 1][: column - 1] if 0 < row <= len(lines) else ""
        return column + width(line) - len(line)

    return Span(span.row, column(span.row, span.column), span.end_row, column(span.end_row, span.end_column))


def clean(text: str) -> str:
    """Text that every program can decode: a name or a string of Python may hold half a character."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def has_file(filename: str) -> bool:
    """Whether that is the name of a file; the standard input and its like have none."""
    return bool(filename) and filename != "-" and not filename.startswith("<")


@dataclass(frozen=True, slots=True)
class Repository:
    """The directory that paths are given from: of the repository around the current directory, or else that one."""

    root: str

    @classmethod
    def around(cls, directory: str) -> Repository:
        """The repository that a directory belongs to."""
        above = Path(directory)
        root = next((place for place in (above, *above.parents) if (place / ".git").exists()), above)
        return cls(str(root))

    def path(self, filename: str) -> str:
        """A file's path from the root, with slashes; the absolute one if it lies elsewhere."""
        if not has_file(filename):
            return filename
        absolute = os.path.abspath(filename)
        try:
            relative = os.path.relpath(absolute, self.root)
        except ValueError:  # another drive of Windows
            return absolute
        return absolute if leads_out(relative) else relative.replace(os.sep, "/")

    def uri(self, filename: str) -> str:
        """The same as a reference in a URI: relative to the root, or with ``file://``."""
        path = self.path(filename)
        return Path(path).as_uri() if os.path.isabs(path) else quote(os.fsencode(path))


def fingerprints(findings: Iterable[Finding], repository: Repository) -> Iterator[tuple[Finding, str]]:
    """Each finding with a fingerprint that no other one of the run has, and that does not change when lines move.

    It is made of the path, the rule, the definition around, the code without its layout, and how many of the same came
    before in the file.
    """
    seen: Counter[tuple[str, ...]] = Counter()
    for finding in findings:
        context = finding.context
        around = ("", "") if context is None else (context.scope, context.text)
        identity = (repository.path(finding.filename), finding.code, *around)
        seen[identity] += 1
        yield finding, digest(*identity, str(seen[identity]))


def digest(*parts: str) -> str:
    """A short hexadecimal name of some texts."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def whole(report: Report, filename: str, fix: Fix) -> Edit | None:
    """A fix as one edit, with the code between its edits; None if the file cannot be read any more."""
    edits = sorted(fix.edits, key=lambda edit: edit.span)
    lines = report.lines(filename)
    last = max(edits, key=lambda edit: (edit.span.end_row, edit.span.end_column)).span
    if not 0 < edits[0].span.row <= last.end_row <= len(lines):
        return None
    row, column = edits[0].span.row, edits[0].span.column
    start, pieces = (row, column), []
    for edit in edits:
        pieces += [extract(lines, Span(row, column, edit.span.row, edit.span.column)), edit.content]
        row, column = edit.span.end_row, edit.span.end_column
    return Edit(Span(*start, row, column), "".join(pieces))
