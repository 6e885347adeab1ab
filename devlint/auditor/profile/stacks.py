"""Python stacks as a trace writes them: whose line to blame.

Older traces have the argument ``Call stack`` of an operator, ``file(line): function;file(line): function``, the
innermost first; newer ones a span for each Python function, named ``file(line): function``.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Literal

from devlint.auditor.frames import INSTALLED, OPERATIONS, TORCHES
from devlint.record import Frame

_PLACE = re.compile(r"(?P<file>.+?)\((?P<line>\d+)\): (?P<function>.+)")
_CELL = re.compile(r"[/\\]ipykernel_\d+[/\\]\d+\.py$")
"""What a kernel calls a cell of a notebook: a file that is nowhere."""
_BUILTIN = re.compile(r"<(?:built-in )?(?:method|function) '?(\w+)")
"""A function that is not written in Python, such as ``<built-in method cuda of Tensor object>``."""
_STANDARD = re.compile(r"(?:^|[/\\])lib[/\\]python3[\d.]*[/\\]|^<")

Kind = Literal["project", "library", "torch", "plumbing"]


def written(stack: str) -> list[str]:
    """The parts of a call stack that an operator has as an argument, the innermost first."""
    return [part for part in stack.split(";") if part]


def blamed(parts: Iterable[str], directory: str) -> tuple[Frame | None, Frame | None]:
    """The innermost frame of the project, and within it the innermost of a library; of torch only if there is none.

    ``parts`` come from the innermost outwards; ``directory`` is where relative files are looked for.
    """
    via: Frame | None = None
    torch: Frame | None = None
    for frame, kind in _frames(parts, directory):
        if kind == "project":
            return frame, via or torch
        if kind == "library" and via is None:
            via = frame
        elif kind == "torch" and torch is None:
            torch = frame
    return None, via or torch


def called(parts: Iterable[str], caller: Frame) -> str | None:
    """The name of what a frame of the stack called; empty if that has none, ``None`` if it called nothing."""
    inner: str | None = None
    for part in parts:
        found = _PLACE.fullmatch(part)
        if found and (int(found["line"]), found["function"]) == (caller.line, caller.function):
            return inner
        builtin = _BUILTIN.match(part)
        inner = found["function"] if found else builtin[1] if builtin else ""
    return None


def _frames(parts: Iterable[str], directory: str) -> Iterator[tuple[Frame, Kind]]:
    for part in parts:
        found = _PLACE.fullmatch(part)
        if found is None:
            continue  # a builtin, or a module: `nn.Module: Linear_0`
        kind = _kind(found["file"])
        file = found["file"] if kind != "project" else _called(found["file"], directory)
        yield Frame(file=file, line=int(found["line"]), function=found["function"]), kind


def _called(file: str, directory: str) -> str:
    return "<ipython-input>" if _CELL.search(file) else os.path.join(directory, file)


@lru_cache(maxsize=4096)
def _kind(file: str) -> Kind:
    """Whose a file is; the profiler leaves out the directory from which it was imported."""
    rooted = f"/{file}"
    installed = INSTALLED.search(rooted)
    first = installed[1] if installed else re.split(r"[/\\]", file)[0]
    if first in TORCHES:
        return "torch" if OPERATIONS.search(rooted) else "plumbing"
    if installed:
        return "library"
    if _STANDARD.search(file) or first.removesuffix(".py") in sys.stdlib_module_names:
        return "plumbing"
    return "project"
