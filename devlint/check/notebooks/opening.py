"""What is done with a notebook that is checked or changed: its script goes where other files go as they are."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from devlint.check.opened import Opened
from devlint.check.suppress import suppressions
from devlint.config.schema import Config
from devlint.finding import Finding, Span
from devlint.rules.registry import registry
from devlint.rules.selection import PARSE_ERROR, graded, ignored_in, selected
from devlint.source.document import UnfixableError
from devlint.source.notebook.cells import Notebook, NotebookError, read
from devlint.source.notebook.script import Script


@dataclass(frozen=True, slots=True)
class OpenedNotebook(Opened):
    """A notebook with its script, or what is wrong with it; ``broken`` is told of what could not be read."""

    notebook: Notebook | None
    script: Script
    broken: tuple[Finding, ...] = ()

    def placed(self, findings: Sequence[Finding], code: bytes | None = None) -> list[Finding]:
        """The findings in the cells."""
        script = self.script if code is None else self.script.with_text(code.decode("utf-8"))
        return script.located(findings)

    def located(self, findings: Sequence[Finding], code: bytes | None = None) -> list[Finding]:
        """The findings in the cells, with what is broken."""
        found = [*self.broken, *self.placed(findings, code)]
        return sorted(found, key=lambda finding: finding.sort_key)

    def file(self, code: bytes) -> bytes:
        """The notebook with other code, which is read again, so that nothing of it is lost."""
        if self.notebook is None or code == self.code:
            return b"" if self.notebook is None else self.notebook.data()
        script = self.script.with_text(code.decode("utf-8"))
        data = script.into(self.notebook)
        after = Script.read(read(data))
        if (after.cells, after.texts()) != (script.cells, script.texts()):
            raise UnfixableError("its cells would not be what they should; please report it")
        return data


def open_notebook(data: bytes | str, filename: str, config: Config) -> OpenedNotebook:
    """Read a notebook; what cannot be read is told by DVL900."""
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    empty = Script.of(())
    try:
        notebook = read(raw)
    except NotebookError as error:
        text = "nothing in it was checked; exclude it if that is intended"
        found = _told(str(error), filename, Span(error.row, 1, error.row, 2), text)
        return OpenedNotebook(_encoded(empty), None, empty, tuple(_reported(found, filename, config)))
    script = Script.read(notebook) if notebook.is_python else empty
    return OpenedNotebook(_encoded(script), notebook, script, _broken(script, filename, config))


def open_cells(cells: Iterable[tuple[int, str]], filename: str, config: Config) -> OpenedNotebook:
    """The code of numbered texts of cells, wherever they come from."""
    script = Script.of(cells)
    return OpenedNotebook(_encoded(script), None, script, _broken(script, filename, config))


def _broken(script: Script, filename: str, config: Config) -> tuple[Finding, ...]:
    """What is said of the cells that are no Python."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    text = f"Python {version} cannot read this cell, so nothing in it was checked"
    broken: list[Finding] = []
    for number, failure in script.broken:
        span = Span(failure.row, failure.column, failure.row, failure.column + 1, number)
        broken += _told(failure.message, filename, span, text)
    return tuple(_reported(_wanted(broken, script), filename, config))


def _encoded(script: Script) -> bytes:
    return script.text.encode("utf-8")


def _told(message: str, filename: str, span: Span, text: str) -> list[Finding]:
    rule = registry().get(PARSE_ERROR)
    if rule is None:
        return []
    return [Finding(PARSE_ERROR, rule.name, rule.severity, message, filename, span, help=text)]


def _reported(findings: Sequence[Finding], filename: str, config: Config) -> list[Finding]:
    """Those of the findings that the configuration wants, with the severities that it gives them."""
    if not findings or PARSE_ERROR not in {rule.code for rule in selected(config)}:
        return []
    ignored = ignored_in(os.path.abspath(filename), config) if config.per_file_ignores else frozenset()
    return [] if PARSE_ERROR in ignored else graded([*findings], config)


def _wanted(findings: Sequence[Finding], script: Script) -> list[Finding]:
    """The findings that no comment of another cell silences for the whole notebook."""
    if not findings:
        return []
    comments = suppressions(script.text, has_findings=False)
    comments.by_row = {None: comments.by_row.get(None, [])}
    return comments.apply(findings)


def foreign(data: bytes) -> str:
    """The language of a notebook's code if that is not Python, else nothing."""
    try:
        notebook = read(data)
    except NotebookError:
        return ""
    return "" if notebook.is_python else notebook.language
