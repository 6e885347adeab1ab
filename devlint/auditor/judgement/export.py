"""Files that are made of a record besides its JSON: the page for a browser, the trace for a viewer of traces."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from devlint.auditor.running import console, storage
from devlint.auditor.running.console import say
from devlint.config.schema import ConfigError
from devlint.record import Record
from devlint.source.output import destination_problem, write

_LONGEST_FILE = 5_000
_MOST_LINES = 15_000
"""Of longer files, and of more of them, a page has only the lines that the record has."""


@dataclass(frozen=True, slots=True)
class Exports:
    """Where the files go; ``None`` for those that are not wanted.

    ``record`` is for what is read and shown again: an audit keeps its own as it goes.
    """

    html: str | None = None
    trace: str | None = None
    record: str | None = None

    def check(self, output: str | None = None, read: Sequence[str | None] = ()) -> None:
        """Raise a :class:`ConfigError` if one of them, or ``output``, could not be written in the end.

        Nor may it be one of the files that are ``read``.
        """
        named = {"--output": self.record if output is None else output, "--html": self.html, "--trace": self.trace}
        seen: dict[str, str] = {}
        for option, path in named.items():
            if path is not None:
                if problem := destination_problem(path, read):
                    raise ConfigError(f"{option}: {problem}")
                other = seen.setdefault(os.path.realpath(path), option)
                if other != option:
                    raise ConfigError(f"{option}: {path}: is what {other} names, too")
        if self.html is not None:
            from devlint.report.html.library import MissingLibraryError, check_libraries

            try:
                check_libraries()
            except MissingLibraryError as error:
                raise ConfigError(str(error)) from error

    def any(self) -> bool:
        """Whether there is anything to write."""
        return any(path is not None for path in (self.html, self.trace, self.record))

    def write(self, record: Record, quiet: bool = False) -> bool:
        """Write them, and say so in a line each; whether all of them could be written."""
        from devlint.report.trace import NoTimelineError, trace

        def page(record: Record) -> bytes:
            return page_of(record).encode("utf-8", "backslashreplace")

        done = True
        for path, make in ((self.html, page), (self.trace, trace), (self.record, storage.encoded)):
            if path is None:
                continue
            problem = ""
            try:
                write(path, make(record))
            except OSError as error:
                problem = f"cannot be written: {error.strerror}"
            except NoTimelineError as error:
                problem = f"cannot be made: {error}"
            except Exception as error:
                problem = f"cannot be made: {type(error).__name__}: {error}"
            if problem:
                say("error", f"{path}: {problem}")
                done = False
            elif not quiet:
                console.write(sys.stderr, f"Wrote {path}\n")
        return done


def page_of(record: Record) -> str:
    """The page for a browser, with the files whole that are still what ran.

    Raises :class:`devlint.report.html.library.MissingLibraryError` where the extra is not installed.
    """
    from devlint.report.html import page

    try:
        cache = storage.home()
    except OSError:
        cache = None
    return page(replace(record, sources=dict(_sources(record))), cache)


def _sources(record: Record) -> Iterator[tuple[str, dict[int, str]]]:
    """The lines of each file: all where it is at hand and still what ran, else those that were recorded."""
    from devlint.auditor.judgement.locator import whole

    room = _MOST_LINES
    for file, recorded in record.sources.items():
        lines = whole(file, recorded)
        if lines is not None and len(lines) <= min(_LONGEST_FILE, room):
            room -= len(lines)
            yield file, dict(enumerate(lines, 1))
        else:
            yield file, recorded
