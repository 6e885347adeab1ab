"""SARIF 2.1.0, for GitHub's code scanning and other viewers: https://docs.oasis-open.org/sarif/sarif/v2.1.0/."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from devlint._about import __version__
from devlint.finding import Failure, Finding, Fix, Severity, Span
from devlint.report import evidence
from devlint.report.base import Report
from devlint.report.formats.exchange import Repository, clean, counted, fingerprints, has_file, utf16
from devlint.rules.registry import registry

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_BASE = "%SRCROOT%"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_PROBLEMS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "recommendation"}
"""GitHub's own words."""
_LIKE_A_LINK = re.compile(r"\[(?=[^\[\]]*\]\()")


def render(report: Report) -> Iterator[str]:
    """Yield one log with one run."""
    yield json.dumps(_Log(report, Repository.around(os.getcwd())).log(), indent=2)


class _Log:
    """The log of a report; columns are counted in UTF-16, which is what readers assume."""

    def __init__(self, report: Report, repository: Repository) -> None:
        self._report = report
        self._repository = repository
        self._codes = sorted({finding.code for finding in report.findings})

    def log(self) -> dict[str, Any]:
        driver = {
            "name": "devlint",
            "version": __version__,
            "semanticVersion": __version__,
            "rules": [_descriptor(code) for code in self._codes],
        }
        invocation = {
            "executionSuccessful": not self._report.undone,
            "toolExecutionNotifications": [self._notification(line) for line in self._report.undone],
        }
        run = {
            "tool": {"driver": driver},
            "invocations": [invocation],
            "originalUriBaseIds": {_BASE: {"uri": Path(self._repository.root).as_uri().rstrip("/") + "/"}},
            "columnKind": "utf16CodeUnits",
            "newlineSequences": ["\r\n", "\n", "\r"],
            "results": [
                self._result(finding, fingerprint)
                for finding, fingerprint in fingerprints(self._report.findings, self._repository)
            ],
        }
        return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}

    def _notification(self, line: str) -> dict[str, Any]:
        found: dict[str, Any] = {"level": "error", "message": {"text": _plain(line)}}
        if isinstance(line, Failure) and has_file(line.path) and "\0" not in line.path:
            found["locations"] = [{"physicalLocation": {"artifactLocation": self._artifact(line.path)}}]
        return found

    def _result(self, finding: Finding, fingerprint: str) -> dict[str, Any]:
        place = self._location(finding.filename, finding.span)
        if finding.context is not None and finding.context.scope:
            place["logicalLocations"] = [{"fullyQualifiedName": clean(finding.context.scope)}]
        found: dict[str, Any] = {
            "ruleId": finding.code,
            "ruleIndex": self._codes.index(finding.code),
            "level": _LEVELS[finding.severity],
            "message": {"text": _message(finding)},
            "locations": [place],
            "partialFingerprints": {"devlint/v1": fingerprint},
        }
        if finding.related:
            found["relatedLocations"] = [
                {
                    "id": number,
                    **self._location(place.filename or finding.filename, place.span),
                    "message": {"text": _plain(place.label)},
                }
                for number, place in enumerate(finding.related, 1)
            ]
        if finding.evidence is not None:
            found["properties"] = {"evidence": evidence.as_object(finding.evidence)}
        if finding.fix is not None:
            found["fixes"] = [self._fix(finding.filename, finding.fix)]
        return found

    def _fix(self, filename: str, fix: Fix) -> dict[str, Any]:
        replacements = [
            {"deletedRegion": self._region(filename, edit.span), "insertedContent": {"text": clean(edit.content)}}
            for edit in fix.edits
        ]
        return {
            "description": {"text": _plain(fix.message)},
            "artifactChanges": [{"artifactLocation": self._artifact(filename), "replacements": replacements}],
            "properties": {"applicability": fix.applicability.value},
        }

    def _location(self, filename: str, span: Span) -> dict[str, Any]:
        place = {"artifactLocation": self._artifact(filename), "region": self._region(filename, span)}
        return {"physicalLocation": place}

    def _artifact(self, filename: str) -> dict[str, Any]:
        if not has_file(filename):
            return {"description": {"text": "the standard input"}}
        uri = self._repository.uri(filename)
        return {"uri": uri} if uri.startswith("file:") else {"uri": uri, "uriBaseId": _BASE}

    def _region(self, filename: str, span: Span) -> dict[str, int]:
        span = counted(self._report, filename, span, utf16)
        return {
            "startLine": span.row,
            "startColumn": span.column,
            "endLine": span.end_row,
            "endColumn": span.end_column,
        }


def _descriptor(code: str) -> dict[str, Any]:
    rule = registry()[code]
    sections = rule.sections()
    text = rule.documentation()
    return {
        "id": code,
        "name": "".join(word.capitalize() for word in rule.name.split("-")),
        "shortDescription": {"text": rule.summary()},
        "fullDescription": {"text": sections.get("What it does") or rule.summary()},
        "help": {"text": text, "markdown": text},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {
            "tags": ["pytorch", "device"],
            "problem.severity": _PROBLEMS[rule.severity],
            "precision": "high",
        },
    }


def _message(finding: Finding) -> str:
    """The message, the help, and links to the related places, without which GitHub would not show these."""
    lines = [_plain(finding.message)]
    if finding.help:
        lines.append(f"help: {_plain(finding.help)}")
    if finding.evidence is not None:
        lines.append(f"run: {_plain(evidence.words(finding.evidence))}")
    for number, place in enumerate(finding.related, 1):
        label = re.sub(r"([\[\]\\])", r"\\\1", clean(place.label))
        lines.append(f"[{label}]({number})")
    return "\n".join(lines)


def _plain(text: str) -> str:
    """Text in which nothing is taken for a link, as `heads[0](x)` would be."""
    return _LIKE_A_LINK.sub(r"\\[", clean(text))
