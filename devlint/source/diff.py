"""What fixes would change, as a unified diff that `patch` and `git apply` take."""

from __future__ import annotations

import difflib
import os
import re

_STRANGE = re.compile(rb'[\x00-\x1f\x7f"\\]')


def unified(name: str, before: bytes, after: bytes) -> bytes:
    """The difference of two contents of a file, in its own bytes; empty where there is none."""
    # one character for each byte, so that the lines come out as they are, whatever their encoding
    old, new = (_lines(data.decode("latin-1")) for data in (before, after))
    lines = difflib.unified_diff(old, new, name, name)
    head = [line[:4].encode() + _named(name) + b"\n" for line in (next(lines, ""), next(lines, "")) if line]
    return b"".join([*head, *(_whole(line).encode("latin-1") for line in lines)])


def _named(name: str) -> bytes:
    """A file's name as git writes it: in quotes where it could end the line, and with its end where it has spaces."""
    data = os.fsencode(name)
    if _STRANGE.search(data):
        return b'"' + _STRANGE.sub(lambda match: b"\\%03o" % match[0][0], data) + b'"'
    return data + b"\t" * (b" " in data)


def _lines(text: str) -> list[str]:
    """Lines end where `patch` sees their end, at a newline alone."""
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + lines[-1:] * bool(lines[-1])


def _whole(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
