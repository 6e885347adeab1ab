"""Whose words an exception has: its own, or those of a process or a log that it quotes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import FrameType

from devlint.auditor.explanation.messages import is_mismatch
from devlint.auditor.frames import TORCHES, Frames

_TRACEBACK = "Traceback (most recent call last)"
_ENDING = re.compile(r"[\w.]+: ")
"""How the last line of a traceback begins: with the class of the exception."""
_REMOTE = ("_RemoteTraceback", "RemoteTraceback")
"""What an exception has for its cause that a process of `concurrent.futures` or `multiprocessing.Pool` has raised."""
_ASSERTING = frozenset({"_pytest", "unittest"})


def chain(error: BaseException) -> Iterator[BaseException]:
    """An exception, and those that it was raised from."""
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        yield found
        seen.add(id(found))
        found = found.__cause__ or (None if found.__suppress_context__ else found.__context__)


def raised_in(error: BaseException) -> FrameType | None:
    """The frame that raised an exception, ``None`` if it was never raised."""
    entry = error.__traceback__
    while entry is not None and entry.tb_next is not None:
        entry = entry.tb_next
    return entry.tb_frame if entry is not None else None


def is_own_mismatch(error: BaseException, frames: Frames) -> bool:
    """Whether an exception says that tensors were on different devices, and says it of this process.

    An assertion of the project shows what it has compared, such as the output of a process: that is never its own.
    """
    if not is_mismatch(error) or type(error.__cause__).__name__ in _REMOTE:
        return False
    frame = raised_in(error)
    package = frame.f_globals.get("__name__", "").partition(".")[0] if frame is not None else ""
    if frame is None or package in TORCHES:
        return True
    if isinstance(error, AssertionError):
        return not frames.is_project(frame.f_code) and package not in _ASSERTING
    return _TRACEBACK not in str(error)


def of_another_process(error: BaseException, frames: Frames) -> str:
    """The line in which an exception, or one that it was raised from, quotes the mismatch of another process, or ''."""
    for one in chain(error):
        text = str(one)
        if _TRACEBACK not in text and type(one.__cause__).__name__ not in _REMOTE:
            continue
        if not is_own_mismatch(one, frames):
            line = saying(text)
            if line:
                return line
    return ""


def saying(text: str) -> str:
    """The line of a text that speaks of devices, empty if none does; that of the error, where code is quoted."""
    said = [line.strip() for line in text.splitlines() if is_mismatch(RuntimeError(line))]
    if _TRACEBACK in text:
        said = [line for line in reversed(said) if _ENDING.match(line)] or said[::-1]
    return said[0] if said else ""
