"""The terminal: what it can show, its colours and links, and how many columns a text takes there."""

from __future__ import annotations

import os
import re
import textwrap
import unicodedata
from collections.abc import Iterator
from typing import TextIO

BLUE, BOLD = "1;34", "1"
"""Styles: lists of numbers for the terminal."""
NARROWEST = 30
"""Text is not wrapped to fewer columns."""
_TAB = "    "
_TURNING = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
"""Characters that make a terminal show others in another order than they are read in."""
_LINKING = (
    ("TERM", r"xterm-kitty|xterm-ghostty|alacritty|foot|wezterm"),
    ("TERM_PROGRAM", r"ghostty|Hyper|iTerm\.app|terminology|vscode|WezTerm|zed"),
    ("VTE_VERSION", r"[5-9]\d{3}|\d{5,}"),
    ("KONSOLE_VERSION", r"\d"),
    ("WT_SESSION", r"."),
    ("DOMTERM", r"."),
)
"""Variables by which terminals say who they are, and what those say that know links."""


class Paint:
    """Colours, where they are wanted; text for people is wrapped to ``width`` columns where that is given.

    ``window`` is the width that code with its labels is fitted into.
    """

    def __init__(self, enabled: bool, width: int | None = None, window: int | None = None, links: bool = False) -> None:
        self._enabled = enabled
        self._width = width
        self._window = window
        self._links = links

    def window(self, lead: int) -> int | None:
        """The columns for code where ``lead`` are taken already, None where it may take as many as it likes."""
        return None if self._window is None else max(self._window - lead, NARROWEST)

    def __call__(self, style: str, text: str) -> str:
        """The text in a style, which is a list of numbers for the terminal."""
        return f"\x1b[{style}m{text}\x1b[0m" if self._enabled and style and text else text

    def link(self, filename: str, text: str) -> str:
        """The text as a link to a file, where the terminal knows what that is."""
        if not self._links or filename == "-" or filename.startswith("<"):
            return text
        filename = re.sub(r"(?<=\.ipynb):cell \d+$", "", filename)
        from pathlib import Path

        return f"\x1b]8;;{Path(os.path.abspath(filename)).as_uri()}\x1b\\{text}\x1b]8;;\x1b\\"

    def wrap(self, text: str, lead: int) -> list[str]:
        """Text as lines, ``lead`` columns being taken already in each; at least one."""
        if self._width is None:
            return text.splitlines() or [""]
        room = max(self._width - lead, NARROWEST)
        lines = [
            textwrap.wrap(line, room, break_on_hyphens=False, break_long_words=False) for line in text.splitlines()
        ]
        return [piece for line in lines for piece in line] or [""]

    def hanging(self, text: str, first: str, rest: str, taken: int, style: str = "") -> Iterator[str]:
        """Text as lines, the first of them behind other words than the rest; ``taken`` columns are taken in each."""
        for number, line in enumerate(self.wrap(text, taken)):
            yield self(style, f"{rest if number else first}{one_line(line)}")


def cells(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii() and text.isprintable():
        return len(text)
    return sum(map(_cell, text))


def _cell(char: str) -> int:
    if char == "\t":
        return len(_TAB)
    if unicodedata.bidirectional(char) in _TURNING:
        return 1
    if unicodedata.combining(char) or unicodedata.category(char) in ("Cf", "Me", "Mn"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def shown(text: str) -> str:
    """Code as it may reach a terminal: an escape sequence in somebody's source must not."""
    if text.isascii() and text.isprintable():
        return text
    harmless = (char if char.isprintable() or char == "\t" or _cell(char) == 0 else "\ufffd" for char in text)
    return "".join(harmless).replace("\t", _TAB)


def one_line(text: str) -> str:
    """Text for one line of a terminal: no line ends, no control characters."""
    return "".join(char if char.isprintable() else " " for char in text)


def wants_color(stream: TextIO) -> bool:
    """Whether what is written there may be coloured."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def shows_links(stream: TextIO) -> bool:
    """Whether a stream is a terminal that is known to make links of what OSC 8 marks as such."""
    if os.environ.get("FORCE_HYPERLINK", ""):
        return os.environ["FORCE_HYPERLINK"] != "0"
    if not stream.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return any(re.match(pattern, os.environ.get(name, "")) for name, pattern in _LINKING)


def width_of(stream: TextIO) -> int | None:
    """The columns of the terminal behind a stream, None if there is none."""
    if not stream.isatty():
        return None
    import shutil

    return shutil.get_terminal_size().columns


def silence(stream: TextIO) -> None:
    """Point a stream that cannot be written to nowhere; Python would complain once more when it closes it."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except (OSError, ValueError):  # a stream that is closed, or has no file behind it
        pass
