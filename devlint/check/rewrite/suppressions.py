"""Adding suppression comments: each finding gets one where it counts, and nothing else changes."""

from __future__ import annotations

import re
import tokenize
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from devlint.check.analysis import Analyzer
from devlint.check.filters import NO_FILTERS, Filters
from devlint.check.opened import Opened
from devlint.check.suppressions import META, PRAGMA, Layout, rows_of, tokens
from devlint.check.task import Rewriter
from devlint.finding import Edit, Finding, Span
from devlint.source.document import Document, UnfixableError
from devlint.source.text import split_lines

_INVISIBLE = frozenset({tokenize.COMMENT, tokenize.NL})
_TEXT_BEGINS = frozenset({"FSTRING_START", "TSTRING_START"})
_TEXT_ENDS = frozenset({"FSTRING_END", "TSTRING_END"})


@dataclass(frozen=True, slots=True)
class AddSuppressions(Rewriter):
    """Add a comment with this reason for each of the findings that the filters let pass."""

    undone = "no suppression was added"
    reason: str = ""
    filters: Filters = NO_FILTERS

    def code(
        self, opened: Opened, found: Sequence[Finding], analyzer: Analyzer
    ) -> tuple[bytes, Sequence[Finding], int]:
        """The code with the comments, what remains to be found, and how many findings they silence."""
        placed = opened.placed(found)
        new = set(map(id, self.filters.new(placed)))
        # A file that does not parse has no place for a comment, and a comment without use goes by `--fix`.
        wanted = [one for one, at in zip(found, placed, strict=True) if one.code not in META and id(at) in new]
        if not wanted:
            return opened.code, found, 0
        code, left = suppressed(opened.code, analyzer, found, wanted, self.reason)
        return code, left, len(found) - len(left)


def wrong_reason(reason: str) -> str:
    """What is wrong with a reason, empty if nothing: it must not be read as anything but a reason."""
    if not reason.isprintable():
        return "the reason must be one line of plain text"
    if re.search(r"#\s*(?:devlint:|noqa\b)", f"# {reason}", re.IGNORECASE):
        return "the reason reads like a suppression itself"
    return ""


def suppressed(
    code: bytes, analyzer: Analyzer, found: Sequence[Finding], wanted: Sequence[Finding], reason: str
) -> tuple[bytes, list[Finding]]:
    """The code with comments for the wanted findings among those found, and what is still found in it.

    The result was checked: it holds the same code, and the others of the findings.
    """
    document = Document.read(code)
    page = _Page(document.text)
    # a comment cannot tell the findings of a rule in one statement from each other
    certain = page.apart(found, wanted)
    expected = Counter(finding.code for finding in certain)
    others = Counter(finding.code for finding in found)
    others.subtract(finding.code for finding in wanted)
    for edits in (page.at_the_end(wanted, reason), page.before(wanted, reason)):
        after = document.changed(document.change(edit) for edit in edits)
        if _code(after.text) != page.code:
            continue
        left = analyzer.findings_in_code(after.data())
        if expected <= Counter(finding.code for finding in left) <= others:
            return after.data(), left
    raise UnfixableError("no place was found where they silence what they should; please report it")


class _Page:
    """The lines of a file, and where a comment can stand."""

    def __init__(self, text: str) -> None:
        self._lines = split_lines(text)
        layout = Layout(self._lines)
        self._logical = layout.logical
        self._comments = {token.start[0]: token for token in layout.comments}
        self._closed = set(self._rows_without_room())
        self.code = _code(text)

    def at_the_end(self, findings: Iterable[Finding], reason: str) -> Iterator[Edit]:
        """Comments at the ends of lines."""
        for row, codes in _by_row(findings, self._row).items():
            line = self._lines[row - 1]
            comment = self._comments.get(row)
            start = len(line.rstrip(" \t")) if comment is None else comment.start[1]
            new = f"  {_comment(codes, reason)}" if comment is None else _extended(comment.string, codes, reason)
            yield Edit(Span(row, start + 1, row, len(line) + 1), new)

    def before(self, findings: Iterable[Finding], reason: str) -> Iterator[Edit]:
        """Comments on lines of their own, before the statements."""
        for row, codes in _by_row(findings, self._first_row).items():
            line = self._lines[row - 1]
            indent = line[: len(line) - len(line.lstrip())]
            yield Edit(Span(row, 1, row, 1), f"{indent}{_comment(codes, reason)}\n")

    def apart(self, found: Iterable[Finding], wanted: Iterable[Finding]) -> list[Finding]:
        """The findings that no comment for the wanted ones can silence."""
        silent = {(finding.code, self._first_row(finding)) for finding in wanted}
        return [finding for finding in found if (finding.code, self._first_row(finding)) not in silent]

    def _row(self, finding: Finding) -> int:
        """The line for a comment: where the finding begins, if there is room, or where it or its statement ends."""
        span = finding.span
        rows = (span.row, span.end_row, *sorted(rows_of(span, self._logical), reverse=True))
        return next((row for row in rows if row not in self._closed), span.row)

    def _first_row(self, finding: Finding) -> int:
        return min(rows_of(finding.span, self._logical))

    def _rows_without_room(self) -> Iterator[int]:
        """The lines whose end lies within a string, or after a backslash."""
        begun: list[int] = []
        for token in tokens(self._lines):
            kind = tokenize.tok_name[token.type]
            first, last = token.start[0], token.end[0]
            if kind in _TEXT_BEGINS:
                begun.append(first)
            elif kind in _TEXT_ENDS and begun:
                first = begun.pop()
            if kind == "STRING" or kind in _TEXT_ENDS:
                yield from range(first, last)
        for row, line in enumerate(self._lines, 1):
            if line.endswith("\\") and row not in self._comments:
                yield row


def _by_row(findings: Iterable[Finding], row_of: Callable[[Finding], int]) -> Mapping[int, list[str]]:
    """The codes for which a comment is needed, by line."""
    rows: dict[int, set[str]] = {}
    for finding in findings:
        rows.setdefault(row_of(finding), set()).add(finding.code)
    return {row: sorted(codes) for row, codes in rows.items()}


def _code(text: str) -> list[tuple[int, str]]:
    """What a text says to Python: its tokens, less the comments and the lines that hold nothing else."""
    return [(token.type, token.string) for token in tokens(split_lines(text)) if token.type not in _INVISIBLE]


def _comment(codes: Iterable[str], reason: str) -> str:
    return f"# devlint: ignore[{', '.join(codes)}]{reason and ' '}{reason}"


def _extended(comment: str, codes: Sequence[str], reason: str) -> str:
    """A comment that names these codes, too: in its brackets, if it is a suppression already."""
    for match in PRAGMA.finditer(comment):
        if match["word"] != "ignore" or not (match["list"] or "").endswith("]"):
            continue
        named = [word.strip() for word in match["list"][1:-1].split(",") if word.strip()]
        more = [code for code in codes if code not in named]
        why = match["rest"].rstrip()
        if reason and reason not in why:
            why = f"{why}; {reason}" if why else reason
        rest = comment[match.end() :]
        text = f"{comment[: match.start('list')]}[{', '.join([*named, *more])}]{why and ' '}{why}"
        return f"{text}  {rest}" if rest else text
    return f"{comment.rstrip()}  {_comment(codes, reason)}"
