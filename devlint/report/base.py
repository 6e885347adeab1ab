"""What every output format is given."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from devlint.finding import Applicability, Finding, Severity, elsewhere, named
from devlint.source.files import held
from devlint.source.text import decode, split_lines

_FILES_KEPT = 16


@dataclass(slots=True)
class Report:
    """The findings of a run, and what is needed to show them."""

    findings: Sequence[Finding]
    files: int = 0
    failures: Sequence[str] = ()
    """A line for everything that devlint could not check."""
    unfixed: Sequence[str] = ()
    """A line for every file that it could not fix."""
    contents: Mapping[str, bytes] = field(default_factory=dict)
    """What was read from the standard input, by the name that it was given."""
    color: bool = False
    quiet: bool = False
    width: int | None = None
    """The columns of the terminal, None where the report goes anywhere else."""
    fixed: int | None = None
    """How many findings were fixed before these; None if that was not tried."""
    unsafe_fixes: bool = False
    known: int = 0
    """How many more findings the baseline holds."""
    fail_on: Severity = Severity.WARNING
    """The least severity that makes the run fail."""
    filed: bool = False
    """Whether the report goes to a file, where nobody sees what stands on the standard error."""
    links: bool = False
    """Whether places are links, which a terminal can open."""
    kind_of: Callable[[str], str] = lambda filename: ""
    """The kind of files that a file is one of, by which the configuration can leave it out; empty if of none."""
    withheld: Sequence[Finding] = ()
    """What is for those alone who select its rule."""
    run: str = ""
    """The record of the run that was asked about the findings, empty if none was."""
    _lines: dict[str, Sequence[str]] = field(default_factory=dict)

    @property
    def undone(self) -> tuple[str, ...]:
        """A line for everything that devlint could not do."""
        return (*self.failures, *self.unfixed)

    def fixable(self) -> tuple[int, int]:
        """How many findings have a fix that may be applied as the options are, and how many another one."""
        fixes = [finding.fix for finding in self.findings if finding.fix is not None]
        safe = sum(self.unsafe_fixes or fix.applicability is Applicability.SAFE for fix in fixes)
        return safe, len(fixes) - safe

    def lines(self, filename: str) -> Sequence[str]:
        """The lines of a file; none if it can no longer be read."""
        if filename not in self._lines:
            # Findings come sorted by file, so that few others are worth keeping.
            while len(self._lines) >= _FILES_KEPT:
                self._lines.pop(next(iter(self._lines)))
            self._lines[filename] = self._read(filename)
        return self._lines[filename]

    def in_file(self, finding: Finding) -> Finding:
        """The finding with places of the file instead of its cells, which its message then names.

        It has no fix any more: what is written into a cell is not what is written into the file.
        """
        span = finding.span
        if not span.cell:
            return finding
        from devlint.source.notebook.cells import parsed

        notebook = parsed(self._data(finding.filename))
        if notebook is None:
            return finding
        in_file = notebook.in_file
        message = f"cell {span.cell}, line {span.row}: {finding.message}"
        related = elsewhere(finding.related, finding.filename, lambda place: replace(place, span=in_file(place.span)))
        return replace(finding, message=message, span=in_file(span), related=related, fix=None)

    def _read(self, filename: str) -> Sequence[str]:
        cell = _CELL.fullmatch(filename)
        if cell is not None:
            from devlint.source.notebook.cells import parsed

            notebook = parsed(self._data(cell["file"]))
            return () if notebook is None else notebook.lines(int(cell["number"]))
        data = self._data(filename)
        text = decode(data)
        return split_lines(text if isinstance(text, str) else data.decode("utf-8", "replace")) if data else ()

    def _data(self, filename: str) -> bytes:
        """The content of a file; nothing if it can no longer be read."""
        data = self.contents.get(filename)
        return (held(filename) or b"") if data is None else data


_CELL = re.compile(r"(?P<file>.*\.ipynb):cell (?P<number>\d+)", re.DOTALL)


def in_cells(finding: Finding) -> Finding:
    """The finding as if each cell of a notebook was a file of its own."""
    if not finding.span.cell:
        return finding
    own = finding.filename
    related = elsewhere(finding.related, own, lambda place: replace(place, filename=named(own, place.span.cell)))
    return replace(finding, filename=named(own, finding.span.cell), related=related)
