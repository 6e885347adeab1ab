"""The events of a trace, one by one: of a file as large as the profiler likes, plain or compressed.

The format is Chrome's Trace Event Format, as Kineto writes it (libkineto/src/output_json.cpp): an object with
``traceEvents`` and facts about the machine before or after them, or the bare list of events.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import zlib
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator
from typing import IO, Any

_GZIP = b"\x1f\x8b"
_CHUNK = 1 << 16
_LONGEST = 1 << 24
"""No event and no fact is as long, in characters: a string that nothing ends would take all memory."""
_TRACE = re.compile(rb'"traceEvents"\s*:|"schemaVersion"\s*:|\A\s*\[.*?"ph"\s*:', re.DOTALL)
_RECORD = re.compile(rb'\A\s*\{\s*"format"\s*:')
_FACTS = ("deviceProperties", "distributedInfo")

Shown = Callable[[int, int], None]
"""Told how much of a file has been read, and of how much, in bytes."""


class TraceError(Exception):
    """A trace cannot be read; the text says why, and does not name the file."""


def is_trace(path: str) -> bool:
    """Whether a file looks like a trace, and not like a record of devlint; one that cannot be read does not."""
    if not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as file:
            head = file.read(_CHUNK)
    except OSError:
        return False
    return looks_like_trace(head)


def looks_like_trace(head: bytes) -> bool:
    """The same of the beginning of a file."""
    # no record of devlint is compressed
    return head.startswith(_GZIP) or (not _RECORD.match(head) and _TRACE.search(head[:_CHUNK]) is not None)


class Trace:
    """A file of events, which may be read again; ``facts`` are known when all events have been."""

    def __init__(self, path: str) -> None:
        self.facts: dict[str, Any] = {}
        self._path = path

    def events(self, shown: Shown = lambda done, total: None) -> Iterator[dict[str, Any]]:
        """Yield the events; raises :class:`TraceError` where the file breaks off or is none."""
        try:
            with open(self._path, "rb") as raw, _decompressed(raw) as file:
                yield from self._events(_Json(_texts(raw, file, shown)))
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise TraceError("the compressed file is damaged or breaks off") from error
        except OSError as error:
            raise TraceError(error.strerror or str(error)) from error

    def _events(self, json_: _Json) -> Iterator[dict[str, Any]]:
        if not json_.peek():
            raise TraceError("it is empty")
        if json_.peek() == "[":
            yield from (event for event in json_.items() if isinstance(event, dict))
        else:
            for key in json_.members():
                if key in _FACTS:
                    self.facts[key] = json_.value()
                elif json_.peek() == "[":
                    events = json_.items()
                    yield from (event for event in events if isinstance(event, dict) and key == "traceEvents")
                else:
                    json_.value()
        if json_.peek():
            raise TraceError(_INVALID)


_INVALID, _CUT, _DEEP = "it is not valid JSON", "it breaks off", "it is nested too deeply"
_SPACE = re.compile(r"[ \t\n\r]*")
_COMMA = re.compile(r"[ \t\n\r]*,[ \t\n\r]*(?=[^ \t\n\r])")
_WORD = re.compile(r"[\w.+\\-]*\s*\Z")
"""What may go on where that which has been read ends: a word, a number, an escape, or nothing at all."""


class _Json:
    """A JSON document that is read bit by bit, of which only one value is held at a time."""

    def __init__(self, texts: Iterator[str]) -> None:
        self._texts = texts
        self._text, self._at = "", 0
        self._decode = json.JSONDecoder(strict=False).raw_decode

    def peek(self) -> str:
        """The next character that is no white space; empty at the end."""
        while True:
            self._at = _SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]  # it matches nothing, too
            if self._at < len(self._text) or not self._read():
                return self._text[self._at : self._at + 1]

    def members(self) -> Iterator[str]:
        """Yield the keys of an object, each when its value is next, which must be read then."""
        for _ in self._parts("{", "}"):
            key = self.value()
            if not isinstance(key, str):
                raise TraceError(_INVALID)
            self._take(":")
            self.peek()
            yield key

    def items(self) -> Iterator[Any]:
        """Yield the items of an array."""
        for _ in self._parts("[", "]"):
            yield self.value()

    def value(self) -> Any:
        """The value that comes next, white space left behind."""
        while True:
            try:
                value, end = self._decode(self._text, self._at)
            except json.JSONDecodeError as error:
                open_ = error.msg.startswith("Unterminated string") or _WORD.match(self._text, error.pos)
                if not open_ or len(self._text) - self._at > _LONGEST:
                    raise TraceError(_INVALID) from error
                if not self._read():
                    raise TraceError(_CUT) from error
            except RecursionError as error:
                raise TraceError(_DEEP) from error
            except ValueError as error:  # a number of more digits than Python converts
                raise TraceError(_INVALID) from error
            else:
                # a number may go on
                if end < len(self._text) or not self._read():
                    self._at = end
                    return value

    def _parts(self, opening: str, closing: str) -> Iterator[None]:
        self._take(opening)
        if self.peek() != closing:
            yield
            while True:
                if found := _COMMA.match(self._text, self._at):
                    self._at = found.end()
                elif self.peek() == ",":
                    self._at += 1
                    self.peek()
                else:
                    break
                yield
        self._take(closing)

    def _take(self, wanted: str) -> None:
        found = self.peek()
        if found != wanted:
            raise TraceError(_INVALID if found else _CUT)
        self._at += 1

    def _read(self) -> bool:
        """Read on; as much again as is held, so that a long value is not begun too often."""
        held = len(self._text) - self._at
        parts, size = [self._text[self._at :]], 0
        while size <= held and (text := next(self._texts, "")):
            parts.append(text)
            size += len(text)
        self._text, self._at = "".join(parts), 0
        return size > 0


def _texts(raw: IO[bytes], file: IO[bytes], shown: Shown) -> Iterator[str]:
    """Yield the text of a file, part by part, none of them empty."""
    decoder, size = getincrementaldecoder("utf-8-sig")("replace"), os.fstat(raw.fileno()).st_size
    while chunk := file.read(_CHUNK):
        shown(raw.tell(), size)
        if text := decoder.decode(chunk):
            yield text
    if text := decoder.decode(b"", final=True):
        yield text


def _decompressed(raw: IO[bytes]) -> IO[bytes]:
    compressed = raw.read(len(_GZIP)) == _GZIP
    raw.seek(0)
    return gzip.GzipFile(fileobj=raw) if compressed else raw  # type: ignore[return-value]  # binary as well
