"""What IPython adds to Python: magics, commands of the shell and questions give way to Python that says nothing.

A line stays a line, and what is Python in it stays in its columns.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import count

from devlint.immutable import replace
from devlint.source.newer import since
from devlint.source.text import ParseFailure, split_lines
from devlint.source.tree import tree_of

MARK = "\x1fdevlint"
"""Begins what stands for something else; nobody writes this."""
_CELL = re.compile(r"\s*%%(?P<name>\w+)")
_ESCAPES = ("%", "!", "?", ",", ";", "/")
"""With what IPython's own lines begin: the last three call a function without the brackets."""
_OF_FILES = ("%", "!")
"""With what lines begin that stay when a notebook is exported."""
_PYTHON_CELLS = frozenset({"capture", "debug", "memit", "mprun", "prun", "time", "timeit"})
"""Magics of a cell whose text is Python, run in the notebook itself."""
_TIMED = re.compile(
    r"(?P<before>(?P<indent>\s*)%(?P<name>time|timeit|memit|prun)(?:[ \t]+-\w+(?:[ \t]+\d+)?)*[ \t]+)(?P<rest>[^\s-].*)"
)
"""Magics of a line whose text is Python, with their options."""
_ASSIGNED = re.compile(r"(?P<target>\s*[A-Za-z_][\w.,\s\[\]'\"]*?\s*=\s*)[%!](?!=)")
_ASKED = re.compile(r"\s*(?:\?{1,2}\s*[\w.*%]+|%{0,2}[\w.*\[\]'\"()]+\?{1,2})\s*;?\s*")
_WORD = re.compile(r"\s*([a-z_]\w*)(?:\s+[^\s=(].*)?\s*")
_AUTOMAGIC = frozenset(
    """alias autoreload bookmark cat cd colors conda config cp debug dhist dirs ed edit env hist history ldir less lf lk
    ll load load_ext ls lsmagic lx macro magic mamba man matplotlib micromamba mkdir more mv notebook pastebin pdb pdoc
    pfile pinfo pip popd prun psearch psource pushd pwd pylab recall reload_ext rerun reset rm rmdir run save store
    tb time timeit unalias unload_ext uv who whos writefile xmode""".split()
)
"""Magics of a line, and the shell's commands among them, which a cell of one line may call without their ``%``."""
_LEXEME = re.compile(r"#.*|'''|\"\"\"|'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"|[()\[\]{}]")


class SkippedCell(Exception):  # noqa: N818  # it is no error that a cell holds something else than Python
    """The cell is in another language, or runs in another process."""


@dataclass(frozen=True, slots=True)
class Plain:
    """A cell without what IPython adds; ``replaced`` are the lines in whose place others stand, by their marks.

    ``indented``: the cell begins further in than it may, which IPython overlooks, so that it has to follow an ``if``.
    """

    text: str
    replaced: dict[str, str]
    indented: bool = False


def plain(text: str, numbers: count[int]) -> Plain | ParseFailure:
    """The Python of a cell, or the reason why there is none; a cell in another language is a SkippedCell."""
    if MARK in text:
        return ParseFailure(
            "the cell contains what devlint writes in the place of magics", text.count("\n", 0, text.index(MARK)) + 1, 1
        )
    lines = text.split("\n")
    first = next((at for at, line in enumerate(lines) if line.strip()), 0)
    replaced: dict[str, str] = {}
    magic = _CELL.match(lines[first])
    if magic is not None:
        if magic["name"] not in _PYTHON_CELLS:
            raise SkippedCell
        lines[first] = _instead("", lines[first], numbers, replaced)
    failure = _failure("\n".join(lines))
    if failure is not None:
        _replace(lines, numbers, replaced)
        if replaced:
            failure = _failure("\n".join(lines))
    # IPython looks in a single line alone for a magic without its `%`
    word = _WORD.fullmatch(text.rstrip("\r\n"))
    if failure is not None and not replaced and word is not None and word[1] in _AUTOMAGIC:
        lines[first], failure = _instead("", lines[first], numbers, replaced), None
    code = "\n".join(lines)
    if failure is not None and lines[first][:1] in (" ", "\t"):
        failure = _failure(f"if 1:\n{code}")
        if failure is None:
            return Plain(code, replaced, indented=True)
        failure = replace(failure, row=max(failure.row - 1, 1))
    return Plain(code, replaced) if failure is None else failure


def exported(text: str) -> Plain | None:
    """The Python of a file that was a notebook once and kept IPython's lines, ``None`` where those are not what fails.

    A file in which Python finds no fault has no such lines.
    """
    failure = _failure(text)
    if failure is None or not split_lines(text)[failure.row - 1].lstrip().startswith(_OF_FILES):
        return None
    try:
        found = plain(text, count(1))
    except SkippedCell:
        return None
    return None if isinstance(found, ParseFailure) or found.indented else found


def restored(line: str, replaced: dict[str, str]) -> str:
    """A line of the Python as it stands in the cell; a KeyError says that there is no such mark."""
    at = line.find(MARK)
    if at < 0:
        return line
    end = line.index(";", at) + 1
    before, mark, after = line[:at], line[at:end], line[end:]
    original = replaced[mark]
    timed = _TIMED.fullmatch(original)
    if timed is None or not _is_run(timed):
        return original + after
    code = before.removesuffix("  # ")
    return f"{timed['before']}{code[len(timed['before']) :]}{after}"


def _replace(lines: list[str], numbers: count[int], replaced: dict[str, str]) -> None:
    """Replace the lines that are not Python, where a line of Python could begin."""
    at = 0
    while at < len(lines):
        last = _last(lines, at)
        new = _python(lines[at].removesuffix("\r"), numbers, replaced)
        if new is not None:
            new += lines[at][len(lines[at].removesuffix("\r")) :]
            end = at
            while lines[end].rstrip("\r").endswith("\\") and end + 1 < len(lines):
                end += 1
            lines[at] = new
            for row in range(at + 1, end + 1):
                lines[row] = _instead("", lines[row], numbers, replaced)
            last = end
        at = last + 1


def _python(line: str, numbers: count[int], replaced: dict[str, str]) -> str | None:
    """What stands in the place of a line, ``None`` where it is Python."""
    stripped = line.strip()
    timed = _TIMED.fullmatch(line)
    if timed is not None and _is_run(timed):
        code = f"{timed['indent']}if 1:".ljust(len(timed["before"]))
        return _instead(f"{code}{timed['rest']}", line, numbers, replaced)
    if stripped[:1] in _ESCAPES:
        return _instead(f"{_indent(line)}pass", line, numbers, replaced)
    assigned = _ASSIGNED.match(line)
    if assigned is not None:
        return _instead(f"{assigned['target']}get_ipython()", line, numbers, replaced)
    if _ASKED.fullmatch(line) and "?" in line:
        return _instead(f"{_indent(line)}pass", line, numbers, replaced)
    return None


def _is_run(timed: re.Match[str]) -> bool:
    """Whether a magic runs Python, and as if it stood there: what `%timeit` assigns is lost, other than by `%time`."""
    rest = timed["rest"]
    return _failure(rest) is None and (timed["name"] in ("time", "prun") or _failure(f"({rest}\n)") is None)


def _instead(code: str, line: str, numbers: count[int], replaced: dict[str, str]) -> str:
    mark = f"{MARK} {next(numbers)};"
    replaced[mark] = line.removesuffix("\r")
    return f"{code}{'  ' if code else ''}# {mark}{line[len(replaced[mark]) :]}"


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _last(lines: list[str], at: int) -> int:
    """The last line of what begins in a line: brackets and strings may go on, and so does a backslash."""
    depth, quote = 0, ""
    for row in range(at, len(lines)):
        line, place = lines[row], 0
        while place < len(line):
            if quote:
                end = line.find(quote, place)
                if end < 0:
                    break
                quote, place = "", end + 3
                continue
            lexeme = _LEXEME.search(line, place)
            if lexeme is None:
                break
            word, place = lexeme[0], lexeme.end()
            if word in ("'''", '"""'):
                quote = word
            elif word in "([{":
                depth += 1
            elif word in ")]}":
                depth = max(depth - 1, 0)
        if not quote and not depth and not line.rstrip("\r").endswith("\\"):
            return row
    return at


def _failure(text: str) -> ParseFailure | None:
    """Why a text is no Python."""
    if "\0" in text:
        return ParseFailure("the cell contains a NUL byte", text.count("\n", 0, text.index("\0")) + 1, 1)
    found = tree_of(text, hint=since)
    if not isinstance(found, ParseFailure):
        return None
    return replace(found, row=min(found.row, len(split_lines(text))))
