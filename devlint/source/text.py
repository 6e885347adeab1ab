"""The text of a file: its bytes decoded as Python would, and its lines, or the one reason why there is none."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence

from devlint.finding import Span
from devlint.immutable import immutable

_BOM = b"\xef\xbb\xbf"
# What the tokenizer looks for in the first two lines (PEP 263); a cheap test before the real detection.
_CODING = re.compile(rb"coding[:=]")
NEWLINE = re.compile("\r\n|\r|\n")


@immutable(frozen=True, slots=True)
class ParseFailure:
    """Why a file has no syntax tree, and where: row and column count from 1; a ``newer`` Python may know it.

    ``unfinished``: all that is missing is what a comment keeps the place of. ``of_syntax``: its grammar is the reason.
    ``elided``: the line stands for code that is left out, or is yet to be written by a template engine.
    """

    message: str
    row: int
    column: int
    newer: bool = False
    unfinished: bool = False
    of_syntax: bool = False
    elided: bool = False


def split_lines(text: str) -> list[str]:
    r"""Split where Python's parser does: at \n, \r\n and \r, never at a form feed or a Unicode line separator."""
    return NEWLINE.split(text) if "\r" in text else text.split("\n")


def extract(lines: Sequence[str], span: Span) -> str:
    """The text of a span, its lines joined by a plain newline."""
    rows = list(lines[span.row - 1 : span.end_row])
    if not rows:
        return ""
    rows[-1] = rows[-1][: span.end_column - 1]
    rows[0] = rows[0][span.column - 1 :]
    return "\n".join(rows)


def decode(data: bytes | str) -> str | ParseFailure:
    """Decode a file as Python would: a byte order mark, then PEP 263's comment, then UTF-8."""
    if isinstance(data, str):
        return data.removeprefix("\ufeff")
    encoding = encoding_of(data)
    if isinstance(encoding, ParseFailure):
        return encoding
    try:
        return data.removeprefix(_BOM).decode(encoding)
    except UnicodeDecodeError as error:
        row, column = _position(data, error.start)
        return ParseFailure(f"the file is not valid {encoding.upper()}: {error.reason}", row, column)
    except (UnicodeError, LookupError, ValueError) as error:
        # `# coding: hex` and its like are codecs, yet none for text.
        return ParseFailure(f"cannot decode the file as {encoding}: {error}", 1, 1)


def encoding_of(data: bytes) -> str | ParseFailure:
    """The encoding of what follows the byte order mark, if there is one."""
    if not _CODING.search(data, 0, 1024):
        return "utf-8"
    import tokenize

    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError as error:
        if data.startswith(_BOM) and error.msg.startswith("encoding problem"):
            return ParseFailure("the file begins with a byte order mark of UTF-8 but declares another encoding", 1, 1)
        return ParseFailure(error.msg, 1, 1)
    return "utf-8" if encoding == "utf-8-sig" else encoding


def _position(data: bytes, offset: int) -> tuple[int, int]:
    """The row and column of a byte, in a file that cannot be decoded as a whole."""
    before = data.removeprefix(_BOM)[:offset].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return before.count(b"\n") + 1, len(before.rpartition(b"\n")[2].decode("utf-8", "replace")) + 1
