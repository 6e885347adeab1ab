"""Syntax that only newer Pythons know, recognised in what the Python that devlint runs on cannot parse."""

from __future__ import annotations

import re
import sys

from devlint.source.text import NEWLINE, split_lines

_NEWER = (
    ((3, 11), re.compile(r"\s*except\s*\*")),
    ((3, 12), re.compile(r"\s*(?:(?:async\s+)?def|class)\s+\w+\s*\[|\s*type\s+\w+\s*(?:\[.*\]\s*)?=(?!=)")),
    ((3, 14), re.compile(r".*(?<!\w)[tT][rR]?[\"']")),
)
"""How lines begin that only newer Pythons know, and since which."""
_FORMATTED = re.compile(r"(?:[fF][rR]?|[rR][fF])(\"\"\"|'''|\"|')")
_PLAIN = re.compile(r"'''.*?'''|\"\"\".*?\"\"\"|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)
_CLOSING = {"(": ")", "[": "]", "{": "}"}


def since(text: str, row: int, column: int, message: str) -> str:
    """Which Python knows the syntax of a line, where the one that devlint runs on is older."""
    lines = split_lines(text)
    line = lines[row - 1] if row <= len(lines) else ""
    known = [release for release, pattern in _NEWER if pattern.match(line)]
    if message.startswith("f-string") or (message.startswith("unterminated string") and _runs_on(lines, row, column)):
        known.append((3, 12))
    own = sys.version_info
    newer = next((release for release in known if own < release), None)
    return f": Python {newer[0]}.{newer[1]} may know it, devlint runs on {own[0]}.{own[1]}" if newer else ""


def _runs_on(lines: list[str], row: int, column: int) -> bool:
    """Whether the string at a place is a formatted one that ends, with a field that runs over several lines."""
    text = "\n".join(lines[row - 1 :])
    # of a prefix of two letters, older Pythons may point at the second, or at the quote
    return any(_end(text, at) for at in range(max(column - 3, 0), column))


def _end(text: str, start: int) -> int:
    """Where the formatted string ends that begins at a place, as Python reads it since 3.12; 0 where none does."""
    opening = _FORMATTED.match(text, start)
    if opening is None:
        return 0
    quote, at = opening[1], opening.end()
    while at < len(text) and not text.startswith(quote, at):
        if text[at] == "\n" and len(quote) == 1:
            return 0
        if text[at] == "{" and not text.startswith("{{", at):
            at = _end_of_field(text, at)
            if not at:
                return 0
        else:
            at += 2 if text[at] == "\\" or text.startswith("{{", at) else 1
    return at + len(quote) if at < len(text) else 0


def _end_of_field(text: str, at: int) -> int:
    """Where the replacement field ends whose bracket is at a place; 0 where its brackets do not match."""
    open_: list[str] = []
    while at < len(text):
        character = text[at]
        if character in _CLOSING:
            open_.append(_CLOSING[character])
        elif character in ")]}" and open_.pop() != character:
            return 0
        if not open_:
            return at + 1
        if character == "#":
            ends = NEWLINE.search(text, at)
            at = ends.end() if ends is not None else len(text)
            continue
        plain = _PLAIN.match(text, at)
        at = _end(text, at) or (plain.end() if plain is not None else at + 1)
    return 0
