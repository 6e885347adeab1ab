"""A notebook that is checked or rewritten: its script goes where other files go as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from devlint.check.opened import PYTHON, Opened, in_project, parse_errors
from devlint.config.schema import Config
from devlint.finding import Finding, Span
from devlint.immutable import immutable
from devlint.source.document import UnfixableError
from devlint.source.notebook.cells import Notebook, NotebookError, parsed, read, written
from devlint.source.notebook.script import Script
from devlint.source.text import ParseFailure


@immutable(frozen=True, slots=True)
class OpenedNotebook(Opened):
    """A notebook with its script, or what is wrong with it; ``broken`` is told of what could not be read."""

    notebook: Notebook | None
    script: Script
    broken: tuple[Finding, ...] = ()

    @classmethod
    def of(cls, script: Script, filename: str, config: Config, notebook: Notebook | None = None) -> OpenedNotebook:
        """The code of a script; of cells that are no Python is told unless a comment of another cell forbids it."""
        failures = [
            (in_project(failure, config), Span(failure.row, failure.column, failure.row, failure.column + 1, number))
            for number, failure in script.broken
        ]
        unread = f"{PYTHON} cannot read this cell, so nothing in it was checked"
        broken = parse_errors(failures, unread, filename, config, script.text)
        return cls(script.text.encode("utf-8"), notebook, script, tuple(broken))

    def placed(self, findings: Sequence[Finding], code: bytes | None = None) -> list[Finding]:
        """The findings in the cells."""
        script = self.script if code is None else self.script.with_text(code.decode("utf-8"))
        return [script.located(finding) for finding in findings]

    def located(self, findings: Sequence[Finding], code: bytes | None = None) -> list[Finding]:
        """The findings in the cells, with what is broken."""
        found = [*self.broken, *self.placed(findings, code)]
        return sorted(found, key=lambda finding: finding.sort_key)

    def file(self, code: bytes) -> bytes:
        """The notebook with other code, which is read again, so that nothing of it is lost."""
        assert self.notebook is not None, "what could not be read has no other code"
        script = self.script.with_text(code.decode("utf-8"))
        data = written(self.notebook, script.texts())
        after = Script.read(read(data))
        if (after.cells, after.texts()) != (script.cells, script.texts()):
            raise UnfixableError("its cells would not be what they should; please report it")
        return data


def open_notebook(data: bytes, filename: str, config: Config) -> OpenedNotebook:
    """Read a notebook; what cannot be read is told by DVL900."""
    try:
        notebook = read(data)
    except NotebookError as error:
        unread = "nothing in it was checked; exclude it if that is intended"
        failure = ParseFailure(str(error), error.row, 1)
        broken = parse_errors([(failure, Span(error.row, 1, error.row, 2))], unread, filename, config)
        return replace(OpenedNotebook.of(Script.of(()), filename, config), broken=tuple(broken))
    script = Script.read(notebook) if notebook.is_python else Script.of(())
    return OpenedNotebook.of(script, filename, config, notebook)


def foreign(data: bytes) -> str:
    """The language of a notebook's code if that is not Python, else nothing."""
    notebook = parsed(data)
    return "" if notebook is None or notebook.is_python else notebook.language
