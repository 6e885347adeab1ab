"""What devlint itself says during an audit: on the standard error, since the standard output is the script's."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import TextIO

from devlint.record import Record
from devlint.report.terminal import one_line, silence, wants_color


def say(kind: str, text: str) -> None:
    """One line, such as ``error: train.py: No such file or directory``."""
    write(sys.stderr, f"{kind}: {one_line(text)}\n")


def show(record: Record, stream: TextIO | None, quiet: bool = False) -> str:
    """Print the report of a record; why it could not be printed is returned, in words."""
    from devlint.report.audit import render

    return write_pieces(stream, lambda color, width: render(record, color, width, quiet))


def write_pieces(stream: TextIO | None, pieces: Callable[[bool, int], Iterator[str]]) -> str:
    """Write what is made for a terminal, with or without colours and of some width; as :func:`write`."""
    if stream is None:
        return ""
    text = "".join(f"{piece}\n" for piece in pieces(wants_color(stream), _width(stream))).strip("\n")
    # an empty line sets it off from what the script has said there
    return write(stream, f"\n{text}\n" if stream is sys.stderr and text else f"{text}\n")


def write(stream: TextIO | None, text: str) -> str:
    """Write, whatever the stream's encoding lacks; what kept it from that is returned, unless nobody listens."""
    if stream is None or not text.strip():
        return ""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    data = text.encode(encoding, "backslashreplace")
    try:
        try:
            stream.write(data.decode(encoding))
            stream.flush()
        except RuntimeError:  # a signal's handler runs while the script writes, and must not wait for it
            while data:
                data = data[os.write(stream.fileno(), data) :]
    except (OSError, ValueError) as error:
        if stream is sys.stdout:
            silence(stream)
        if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
            return error.strerror or str(error)
    return ""


def _width(stream: TextIO) -> int:
    """The width of the terminal that the stream is, or 100."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdigit() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(stream.fileno()).columns or 100
    except (OSError, ValueError, AttributeError):  # no terminal
        return 100
