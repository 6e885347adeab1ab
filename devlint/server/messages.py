"""Findings, fixes and answers in the words of the Language Server Protocol.

https://microsoft.github.io/language-server-protocol/specifications/lsp/3.17/specification/
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from lsprotocol import types
from pygls.uris import from_fs_path

from devlint.finding import Answer, Applicability, Finding, Place, Severity
from devlint.rules.selection import PARSE_ERROR, UNUSED_SUPPRESSION
from devlint.server.analysis import Analysis, fixed, suppressed
from devlint.server.documents import Part, Snapshot
from devlint.source.files import held
from devlint.source.text import decode

SOURCE = "devlint"
FIX_ALL = "source.fixAll.devlint"
_SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.INFO: types.DiagnosticSeverity.Information,
}
_DEPRECATED = "DVL7"
"""The family of rules about what torch is about to drop."""

Pages = Callable[[str], str]
"""The address of a rule's documentation, by its code."""


def diagnostic(snapshot: Snapshot, finding: Finding, pages: Pages) -> types.Diagnostic:
    """One finding, with the places that led there and a link to its rule."""
    part = snapshot.part(finding.span.cell) or snapshot.parts[0]
    tags = []
    if finding.code == UNUSED_SUPPRESSION:
        tags.append(types.DiagnosticTag.Unnecessary)
    if finding.code.startswith(_DEPRECATED):
        tags.append(types.DiagnosticTag.Deprecated)
    page, span = pages(finding.code), finding.span
    if (span.row, span.column) == (span.end_row, span.end_column):
        span = replace(span, end_column=span.column + 1)  # so that there is something to be seen
    return types.Diagnostic(
        range=part.place(span),
        message=f"{finding.message}\nhelp: {finding.help}" if finding.help else finding.message,
        severity=_SEVERITIES[finding.severity],
        code=finding.code,
        code_description=types.CodeDescription(page) if page else None,
        source=SOURCE,
        tags=tags or None,
        related_information=[
            types.DiagnosticRelatedInformation(_location(snapshot, place), place.label) for place in finding.related
        ]
        or None,
    )


def _location(snapshot: Snapshot, place: Place) -> types.Location:
    if place.filename in ("", snapshot.filename):
        part = snapshot.part(place.span.cell) or snapshot.parts[0]
    else:
        part = _file(snapshot, os.path.abspath(place.filename))
    return types.Location(part.uri, part.place(place.span))


def _file(snapshot: Snapshot, path: str) -> Part:
    """Another file, as the editor has it or as it is on the disk."""
    text: object = snapshot.unsaved.get(path)
    if text is None:
        text = decode(held(path) or b"")
    return Part(from_fs_path(path) or path, text if isinstance(text, str) else "", encoding=snapshot.parts[0].encoding)


def actions(analysis: Analysis, findings: Iterable[tuple[Finding, Finding]], pages: Pages) -> list[types.CodeAction]:
    """Quick fixes of findings, each in the code and at its place, and the comments that silence them."""
    quick, silent = [], []
    for finding, placed in findings:
        shown = [diagnostic(analysis.snapshot, placed, pages)]
        texts = fixed(analysis, finding)
        if texts is not None and finding.fix is not None:
            safe = finding.fix.applicability is Applicability.SAFE
            title = f"{finding.code}: {finding.fix.message}{'' if safe else ' (unsafe)'}"
            quick.append(action(analysis.snapshot, title, texts, types.CodeActionKind.QuickFix, shown, safe or None))
        # of what cannot be read no comment can be
        texts = None if finding.code == PARSE_ERROR else suppressed(analysis, finding)
        if texts is not None:
            title = f"{finding.code}: Suppress here"
            silent.append(action(analysis.snapshot, title, texts, types.CodeActionKind.QuickFix, shown))
    return [*quick, *silent]


def action(
    snapshot: Snapshot,
    title: str,
    texts: dict[int, str],
    kind: types.CodeActionKind | str,
    shown: Sequence[types.Diagnostic] | None = None,
    preferred: bool | None = None,
) -> types.CodeAction:
    """What makes these texts of a snapshot's parts."""
    changes = {
        part.uri: (part, edits) for part in snapshot.parts if (edits := part.edits(texts.get(part.cell, part.text)))
    }
    if snapshot.versioned:
        edit = types.WorkspaceEdit(
            document_changes=[
                types.TextDocumentEdit(types.OptionalVersionedTextDocumentIdentifier(uri, part.version), edits)
                for uri, (part, edits) in changes.items()
            ]
        )
    else:
        edit = types.WorkspaceEdit(changes={uri: edits for uri, (_, edits) in changes.items()})
    return types.CodeAction(title=title, kind=kind, diagnostics=shown, is_preferred=preferred, edit=edit)


def hover(snapshot: Snapshot, part: Part, answers: Sequence[Answer], markdown: bool) -> types.Hover | None:
    """What is known of a name, and the places that led there; ``None`` if that is nothing."""
    known = [answer for answer in answers if answer.known]
    if not known:
        return None
    lines: list[str] = []
    for answer in known:
        lines += [answer.message, "", *(_step(snapshot, place, markdown) for place in answer.story), ""]
    text = "\n".join(lines).strip()
    kind = types.MarkupKind.Markdown if markdown else types.MarkupKind.PlainText
    return types.Hover(types.MarkupContent(kind, text), part.place(known[0].span))


def _step(snapshot: Snapshot, place: Place, markdown: bool) -> str:
    """One place of a story, as a link where that can be."""
    location = _location(snapshot, place)
    row = location.range.start.line + 1
    own = place.filename in ("", snapshot.filename)
    name = os.path.basename(snapshot.filename if own else place.filename)
    where = f"cell {place.span.cell}, line {row}" if place.span.cell else f"line {row}" if own else f"{name}:{row}"
    return f"- [{where}]({location.uri}#L{row}): {place.label}" if markdown else f"- {where}: {place.label}"
