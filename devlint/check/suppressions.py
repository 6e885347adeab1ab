"""Suppression comments: ``# devlint: ignore[...]``, ``# devlint: ignore-file[...]`` and ``# noqa``."""

from __future__ import annotations

import re
import tokenize
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from devlint.config.messages import did_you_mean
from devlint.finding import Applicability, Edit, Finding, Fix, Span
from devlint.rules.registry import registry
from devlint.rules.selection import PARSE_ERROR, UNUSED_SUPPRESSION, UnknownSelectorError, codes_of
from devlint.source.text import split_lines

_MENTIONS = (b"devlint:", b"noqa")
_OURS = (b"devlint:", b"dvl")
PRAGMA = re.compile(r"#\s*devlint:\s*(?P<word>[\w-]*)\s*(?P<list>\[[^\]#]*\]?)?\s*(?P<rest>[^#]*)")
_NOQA = r"(?i)#\s*noqa(?![\w-])(?:\s*:\s*(?P<codes>[A-Z]+[0-9]+(?:[\s,]+[A-Z]+[0-9]+)*))?"
_SKIPPED = frozenset({tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT})
META = frozenset({PARSE_ERROR, UNUSED_SUPPRESSION})


@dataclass(slots=True)
class _Entry:
    """One word of a suppression: how it is told, what it silences, and whether it silenced anything."""

    text: str
    codes: frozenset[str]
    word: str
    """The selector as it is written; empty where the comment names none."""
    used: bool = False


@dataclass(slots=True)
class _Comment:
    """One suppression comment, and how it is written: where it and its selectors begin and end in its row.

    ``rows`` are the lines that it speaks of, None for the whole file.
    """

    rows: frozenset[int] | None
    entries: list[_Entry]
    span: Span
    reportable: bool
    """Whether an unused one is worth a word: a blank ``# noqa`` is other linters' business."""
    row: int
    lines: Sequence[str]
    whole: tuple[int, int]
    listed: tuple[int, int]
    words: tuple[str, ...]

    def without(self, entries: Sequence[_Entry]) -> Fix | None:
        """The fix that takes selectors out or, if none would be left, all of it."""
        unused = {entry.word for entry in entries}
        known = registry()
        # an audit may need what this run does not
        audited = any(known[code].observed for entry in entries for code in entry.codes)
        applicability = Applicability.UNSAFE if audited else Applicability.SAFE
        kept = [word for word in self.words if word not in unused]
        if kept:
            edit = self._edit(*self.listed, ", ".join(kept))
            return Fix(f"Remove `{', '.join(sorted(unused))}`", (edit,), applicability)
        edit_of_all = self._edit_of_all()
        return None if edit_of_all is None else Fix("Remove the comment", (edit_of_all,), applicability)

    def _edit_of_all(self) -> Edit | None:
        line, (start, end) = self.lines[self.row - 1], self.whole
        before, after = line[:start], line[end:]
        if after.strip():
            # what follows is another comment, or becomes one
            end += len(after) - len(after.lstrip())
            return self._edit(start, end, "" if after.lstrip().startswith("#") else "# ")
        if before.strip():
            return self._edit(len(before.rstrip()), len(line), "")
        if self.row > 1 and self.lines[self.row - 2].endswith("\\"):
            return None  # the statement before would go on in what comes after
        if self.row == len(self.lines):
            return self._edit(0, len(line), "")
        return Edit(Span(self.row, 1, self.row + 1, 1), "")

    def _edit(self, start: int, end: int, content: str) -> Edit:
        return Edit(Span(self.row, start + 1, self.row, end + 1), content)


@dataclass(slots=True)
class Suppressions:
    """All suppressions of one file."""

    comments: list[_Comment] = field(default_factory=list)
    by_row: dict[int | None, list[_Comment]] = field(default_factory=dict)
    """The comments that speak of a line; under None, of the whole file."""
    problems: list[tuple[Span, str]] = field(default_factory=list)
    logical: list[tuple[int, int]] = field(default_factory=list)
    """First and last line of every statement; of a compound statement, of its header."""

    def add(self, comment: _Comment) -> None:
        """Take one comment in."""
        self.comments.append(comment)
        for row in (None,) if comment.rows is None else comment.rows:
            self.by_row.setdefault(row, []).append(comment)

    def codes(self, selector: str, span: Span) -> frozenset[str] | None:
        """The rules that a selector in a comment means; one that means none is a problem there."""
        try:
            return codes_of(selector)
        except UnknownSelectorError as error:
            self.problems.append((span, str(error)))
            return None

    def apply(self, findings: Iterable[Finding]) -> list[Finding]:
        """The findings that no comment silences."""
        return [finding for finding in findings if not self._silenced(finding)]

    def unused(self, filename: str, active: frozenset[str]) -> list[Finding]:
        """DVL901 for what silenced nothing, judged only by the rules that ran."""
        rule = registry().get(UNUSED_SUPPRESSION)
        if rule is None or UNUSED_SUPPRESSION not in active:
            return []
        reports: list[tuple[Span, str, Fix | None]] = [(span, message, None) for span, message in self.problems]
        for comment in filter(attrgetter("reportable"), self.comments):
            unused = [entry for entry in comment.entries if not entry.used and _could_fire(entry.codes, active)]
            fix = comment.without(unused) if unused else None
            reports += [(comment.span, f"{entry.text} silences nothing here", fix) for entry in unused]
        advice = "remove it, so that it cannot hide a finding to come"
        findings = [
            Finding(UNUSED_SUPPRESSION, rule.name, rule.severity, message, filename, span, help=advice, fix=fix)
            for span, message, fix in reports
        ]
        return [finding for finding in findings if not self._silenced(finding)]

    def _silenced(self, finding: Finding) -> bool:
        silenced = False
        for row in (None, *rows_of(finding.span, self.logical)) if self.comments else ():
            for comment in self.by_row.get(row, ()):
                for entry in comment.entries:
                    # A blanket comment does not silence the report that it is not needed.
                    if finding.code in entry.codes and (finding.code != UNUSED_SUPPRESSION or entry.codes <= META):
                        entry.used = silenced = True
        return silenced


class Layout:
    """Where a file's statements and comments stand, read from its tokens."""

    def __init__(self, lines: list[str]) -> None:
        self.comments: list[tokenize.TokenInfo] = []
        self.logical: list[tuple[int, int]] = []
        self._decorated: set[int] = set()
        self._code_rows: list[int] = []
        first: int | None = None
        for token in tokens(lines):
            row = token.start[0]
            if token.type == tokenize.COMMENT:
                self.comments.append(token)
            elif token.type in (tokenize.NEWLINE, tokenize.ENDMARKER):
                if first is not None:
                    self.logical.append((first, row))
                first = None
            elif token.type not in _SKIPPED:
                if first is None:
                    first = row
                    if token.string == "@":
                        self._decorated.add(row)
                if not self._code_rows or self._code_rows[-1] < row:
                    self._code_rows.append(row)

    def rows_below(self, row: int) -> frozenset[int]:
        """The lines that a comment on a line of its own speaks of: the next line of code, and what it decorates."""
        at = bisect_right(self._code_rows, row)
        if at == len(self._code_rows):
            return frozenset()
        target = self._code_rows[at]
        rows = {target}
        at = bisect_left(self.logical, (target, 0))
        while at < len(self.logical) and self.logical[at][0] in self._decorated:
            at += 1
            if at < len(self.logical):
                rows.add(self.logical[at][0])
        return frozenset(rows)


def suppressions(text: str, has_findings: bool) -> Suppressions:
    """Read a file's suppression comments; ``has_findings`` says whether a blank ``# noqa`` can matter at all."""
    found = Suppressions()
    # Tokens are dear, comments for us are rare: most files are done here.
    lowered = text.encode(errors="replace").lower()
    if not any(word in lowered for word in (_MENTIONS if has_findings else _OURS)):
        return found
    lines = split_lines(text)
    layout = Layout(lines)
    found.logical = layout.logical
    for token in layout.comments:
        (row, column), comment = token.start, token.string
        alone = not lines[row - 1][:column].strip()
        for match in PRAGMA.finditer(comment):
            rows = layout.rows_below(row) if alone else frozenset({row})
            _read_pragma(match, (row, column), lines, rows, found)
        noqa = None if alone else re.search(_NOQA, comment)
        if noqa:
            _read_noqa(noqa, (row, column), lines, found)
    return found


def rows_of(span: Span, logical: list[tuple[int, int]]) -> set[int]:
    """The lines where a comment counts for a finding: its own ends, and the ends of its statement."""
    rows = {span.row, span.end_row}
    for row in (span.row, span.end_row):
        at = bisect_right(logical, (row, 1 << 30)) - 1
        if at >= 0 and logical[at][0] <= row <= logical[at][1]:
            rows.update(logical[at])
    return rows


def tokens(lines: list[str]) -> Iterator[tokenize.TokenInfo]:
    """The tokens up to the first that is not Python: a file that does not parse may still ask to be left alone."""
    try:
        yield from tokenize.generate_tokens(iter([f"{line}\n" for line in lines]).__next__)
    except (tokenize.TokenError, SyntaxError, StopIteration):
        return


def _read_pragma(
    match: re.Match[str], place: tuple[int, int], lines: Sequence[str], rows: frozenset[int], found: Suppressions
) -> None:
    row, column = place
    word, listed, rest = match["word"], match["list"], match["rest"]
    start = column + match.start() + 1
    span = Span(row, start, row, start + len(match[0].rstrip()))
    if word not in ("ignore", "ignore-file"):
        hint = did_you_mean(word, ("ignore", "ignore-file"))
        found.problems.append((span, f"there is no devlint comment {word!r}{hint}"))
        return
    if listed is None:
        if re.match(r"DVL\d", rest):
            found.problems.append((span, f"rules stand in brackets: `# devlint: {word}[{rest.split()[0]}]`"))
            return
        selectors = ["ALL"]
    else:
        selectors = [selector.strip() for selector in listed.strip("[]").split(",") if selector.strip()]
        if not listed.endswith("]") or not selectors:
            found.problems.append((span, f"write the rules as `# devlint: {word}[DVL101, DVL6]`"))
            return
    entries = [
        _Entry(f"`{word}[{selector}]`" if listed else f"`{word}`", codes, selector if listed else "")
        for selector in selectors
        if (codes := found.codes(selector, span)) is not None
    ]
    inside = (column + match.start("list") + 1, column + match.end("list") - 1)
    whole, words = (column + match.start(), column + match.end()), tuple(selectors) if listed else ()
    about = None if word == "ignore-file" else rows
    found.add(_Comment(about, entries, span, True, row, lines, whole, inside, words))


def _read_noqa(match: re.Match[str], place: tuple[int, int], lines: Sequence[str], found: Suppressions) -> None:
    row, column = place
    start = column + match.start() + 1
    span = Span(row, start, row, start + len(match[0]))
    listed = re.split(r"[\s,]+", match["codes"] or "")
    entries = [
        _Entry(f"`noqa: {word.upper()}`", codes, word)
        for word in listed
        if word.upper().startswith("DVL") and (codes := found.codes(word.upper(), span)) is not None
    ]
    if match["codes"] is None:
        entries.append(_Entry("`noqa`", frozenset(registry()), ""))
    whole, inside = ((column + match.start(part), column + match.end(part)) for part in (0, "codes"))
    reportable = match["codes"] is not None
    found.add(_Comment(frozenset({row}), entries, span, reportable, row, lines, whole, inside, tuple(listed)))


def _could_fire(codes: frozenset[str], active: frozenset[str]) -> bool:
    """Whether this run tried enough rules to call a suppression unused: all the default ones that it names."""
    known = registry()
    named = codes - META
    return bool(named & active) and {code for code in named if known[code].default} <= active
