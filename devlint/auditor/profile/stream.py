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
from collections.abc import Callable, Iterator
from typing import IO, Any

_GZIP = b"\x1f\x8b"
_CHUNK = 1 << 16
_HEAD = 1 << 20
"""So many bytes at each end are searched for the facts that stand beside the events."""
_DEEP = 10_000
"""No trace is nested like that, and a parser that keeps the path to where it is would take all memory."""
_TRACE = re.compile(rb'"traceEvents"\s*:|"schemaVersion"\s*:|\A\s*\[.*?"ph"\s*:', re.DOTALL)
_RECORD = re.compile(rb'\A\s*\{\s*"format"\s*:')

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
    """A file of events, which is read once; ``facts`` are known when all events have been."""

    def __init__(self, path: str, shown: Shown = lambda done, total: None) -> None:
        self.facts: dict[str, Any] = {}
        self._path = path
        self._shown = shown

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield the events; raises :class:`TraceError` where the file breaks off or is none."""
        import ijson

        size = os.path.getsize(self._path)
        found: list[dict[str, Any]] = []
        head, tail, depth = b"", b"", 0
        try:
            with open(self._path, "rb") as raw, _decompressed(raw) as file:
                parser: Any = None
                while chunk := file.read(_CHUNK):
                    if parser is None:
                        prefix = "item" if chunk.lstrip()[:1] == b"[" else "traceEvents.item"
                        parser = ijson.items_coro(_Sink(found), prefix, use_float=True)
                    head = head + chunk if len(head) < _HEAD else head
                    tail = (tail + chunk)[-_HEAD:]
                    depth += sum(map(chunk.count, (b"[", b"{"))) - sum(map(chunk.count, (b"]", b"}")))
                    if depth > _DEEP:
                        raise TraceError("it is nested too deeply")
                    parser.send(chunk)
                    self._shown(raw.tell(), size)
                    yield from (event for event in found if isinstance(event, dict))
                    found.clear()
                if parser is None:
                    raise TraceError("it is empty")
                parser.close()
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise TraceError("the compressed file is damaged or breaks off") from error
        except ijson.JSONError as error:
            cut = "incomplete" in str(error).lower() or "premature" in str(error).lower()
            raise TraceError("it breaks off" if cut else "it is not valid JSON") from error
        except OSError as error:
            raise TraceError(error.strerror or str(error)) from error
        yield from (event for event in found if isinstance(event, dict))
        self.facts = {**_facts(tail), **_facts(head)}


class _Sink:
    """Where the parser puts what it has read."""

    def __init__(self, found: list[dict[str, Any]]) -> None:
        self.send = found.append

    def close(self) -> None:
        """Nothing is left to do."""


def _decompressed(raw: IO[bytes]) -> IO[bytes]:
    compressed = raw.read(len(_GZIP)) == _GZIP
    raw.seek(0)
    return gzip.GzipFile(fileobj=raw) if compressed else raw  # type: ignore[return-value]  # binary as well


_FACTS = ("deviceProperties", "distributedInfo", "traceName", "baseTimeNanoseconds", "cuda_driver_version")


def _facts(part: bytes) -> dict[str, Any]:
    """What a part of the file says beside the events, by its keys."""
    text, decoder = part.decode("utf-8", "replace"), json.JSONDecoder()
    found = {}
    for key in _FACTS:
        place = re.search(rf'"{key}"\s*:\s*', text)
        if place is not None:
            try:
                found[key] = decoder.raw_decode(text, place.end())[0]
            except ValueError:
                continue  # cut off at the end of the part
    return found
