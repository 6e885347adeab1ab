"""JUnit's XML, as Jenkins and most other CI systems read it: a suite for each file, a test for each finding."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from xml.etree import ElementTree as ET

from devlint.finding import Failure, Finding
from devlint.report.base import Report, in_cells
from devlint.report.excerpt import diagnostic, notes_of
from devlint.report.formats.exchange import Repository, clean
from devlint.report.terminal import Paint
from devlint.report.wording import plural

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(report: Report) -> Iterator[str]:
    """Yield one document.  What does not fail the run fails no test: it is in the output of one that has passed."""
    repository = Repository.around(os.getcwd())
    root = ET.Element("testsuites", name="devlint")
    if report.undone:
        _suite(root, "devlint", [_failed(line) for line in report.undone])
    for filename, findings in groupby(report.findings, key=lambda finding: finding.filename):
        path = _text(repository.path(filename))
        _suite(root, path, list(_cases(report, path, findings)))
    if not len(root):
        # Jenkins takes a report without a test for a mistake.
        case = ET.Element("testcase", name=f"no problems in {plural(report.files, 'file')}", classname="devlint")
        _suite(root, "devlint", [case])
    for word in ("tests", "failures", "errors"):
        root.set(word, str(sum(int(suite.get(word, "0")) for suite in root)))
    ET.indent(root)
    # ASCII, so that it is right in whatever encoding it is printed.
    yield '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="us-ascii").decode("ascii")


def _suite(root: ET.Element, name: str, cases: list[ET.Element]) -> None:
    suite = ET.SubElement(root, "testsuite", name=name, tests=str(len(cases)))
    for word, tag in (("failures", "failure"), ("errors", "error")):
        suite.set(word, str(sum(case.find(tag) is not None for case in cases)))
    suite.extend(cases)


def _failed(line: str) -> ET.Element:
    name = line.path if isinstance(line, Failure) else line
    case = ET.Element("testcase", name=_text(name), classname="devlint")
    ET.SubElement(case, "error", message=_text(line), type="failure").text = _text(line)
    return case


def _cases(report: Report, path: str, findings: Iterable[Finding]) -> Iterator[ET.Element]:
    """A test for each finding; its name stays the same when lines move, so that a CI system can tell what is new."""
    seen: Counter[str] = Counter()
    for finding in findings:
        scope = finding.context.scope if finding.context is not None else ""
        name = f"{finding.code} {finding.name}" + (f" in {scope}" if scope else "")
        seen[name] += 1
        if seen[name] > 1:
            name = f"{name} ({seen[name]})"
        case = ET.Element("testcase", name=_text(name), classname=path)
        text = _text("\n".join(diagnostic(in_cells(finding), report.lines, Paint(False), notes_of(finding))))
        if finding.severity >= report.fail_on:
            ET.SubElement(case, "failure", message=_text(finding.message), type=str(finding.severity)).text = text
        else:
            ET.SubElement(case, "system-out").text = text
        yield case


def _text(text: str) -> str:
    """Text without the characters that XML cannot hold."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", clean(text))
