"""Workflow commands, which GitHub's runner turns into annotations of the lines.

https://docs.github.com/actions/reference/workflow-commands-for-github-actions
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from devlint.finding import Finding, Severity, failed_file
from devlint.report.base import Report
from devlint.report.evidence import said
from devlint.report.formats.exchange import clean, has_file

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}
_DATA = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY = {**_DATA, ":": "%3A", ",": "%2C"}


def render(report: Report) -> Iterator[str]:
    """Yield a command for each failure and each finding."""
    for line in report.undone:
        yield _command("error", {"title": "devlint", "file": _file(failed_file(line))}, line)
    for finding in report.findings:
        yield _command(_COMMANDS[finding.severity], _properties(finding), _message(finding))


def _properties(finding: Finding) -> dict[str, object]:
    span = finding.span
    found = {"title": f"devlint ({finding.code})", "file": _file(finding.filename), "line": span.row}
    if span.row == span.end_row:
        # The runner drops the columns of what runs over several lines.
        found |= {"col": span.column, "endLine": span.end_row, "endColumn": span.end_column}
    else:
        found |= {"endLine": span.end_row}
    return found


def _message(finding: Finding) -> str:
    span = finding.span
    # The log shows the message without the properties.
    text = f"{finding.filename}:{span.row}:{span.column}: {finding.code} {finding.message}"
    text += said(finding, "\nrun: ")
    return f"{text}\nhelp: {finding.help}" if finding.help else text


def _file(filename: str) -> str:
    """The absolute path: from a relative one the runner would not know in which directory devlint ran."""
    return os.path.abspath(filename) if has_file(filename) else ""


def _command(name: str, properties: dict[str, object], data: str) -> str:
    given = ",".join(f"{key}={_escaped(str(value), _PROPERTY)}" for key, value in properties.items() if value != "")
    return f"::{name} {given}::{_escaped(data, _DATA)}"


def _escaped(text: str, table: dict[str, str]) -> str:
    return "".join(table.get(char, char) for char in clean(text))
