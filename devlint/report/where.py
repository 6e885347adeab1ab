"""Where names live, in words or as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from devlint.finding import Answer, Finding, Severity
from devlint.report.base import in_cells
from devlint.report.excerpt import diagnostic
from devlint.report.formats.json import absolute, place_of, places
from devlint.report.terminal import BOLD, Paint, one_line


def text(answers: Sequence[Answer], lines_of: Callable[[str], Sequence[str]], paint: Paint) -> Iterator[str]:
    """Yield each answer with its story underlined in the code."""
    for answer in answers:
        yield from paint.hanging(one_line(answer.message), "", "    ", 4, BOLD)
        finding = Finding("", "", Severity.INFO, "", answer.filename, answer.span, related=answer.story)
        yield from diagnostic(in_cells(finding), lines_of, paint, titled=False)
        yield ""


def as_json(answers: Sequence[Answer]) -> str:
    """One JSON list with an object for every answer."""
    return json.dumps([_object(answer) for answer in answers], indent=2)


def _object(answer: Answer) -> dict[str, Any]:
    return {
        "name": answer.name,
        "kind": answer.kind or None,
        "devices": list(answer.devices),
        "certain": answer.certain,
        "message": answer.message,
        "caller": answer.caller or None,
        "filename": absolute(answer.filename),
        **place_of(answer.span),
        "story": places(answer.story, answer.filename),
    }
