"""Whose code is running: from a stack to a place in the project, cheaply enough for every copy."""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from collections.abc import Iterable
from types import CodeType, FrameType
from typing import NamedTuple

from devlint.record import Frame

_INTERNAL, _LIBRARY, _PROJECT = 0, 1, 2
NOWHERE = 0
"""The :class:`Place` of an event without any frame of the project or a library."""


class Spot(NamedTuple):
    """A code object and the instruction in it."""

    code: CodeType
    instruction: int


class Place(NamedTuple):
    """The innermost frame of the project, and the innermost one outside of torch if that is another."""

    frame: Spot | None
    via: Spot | None


class Frames:
    """Finds the place where something happens; a place is a small number until somebody wants to read it.

    ``roots`` are directories that are the project's even if they lie among installed packages (``-m package``).
    torch, devlint and the standard library are nobody's code; what is installed is a library's; the rest is the
    project's.
    """

    def __init__(self, roots: Iterable[str] = ()) -> None:
        self._roots = tuple(_directory(root) for root in roots)
        self._internal = _internal_directories()
        self._libraries = _library_directories()
        # By id, since hashing a code object takes as long as the rest; `_alive` keeps the ids from being used again.
        self._kinds: dict[int, int] = {}
        self._alive: list[CodeType] = []
        self._numbers: dict[tuple[int, int, int, int], int] = {}
        self._places: list[Place] = [Place(None, None)]

    def here(self, depth: int = 1) -> int:
        """The number of the place that called; ``depth`` frames above this call are skipped."""
        return self.at(sys._getframe(depth + 1))

    def at(self, frame: FrameType | None) -> int:
        """The number of the place of a frame, or of the frames that called it."""
        via: FrameType | None = None
        kinds = self._kinds
        while frame is not None:
            code = frame.f_code
            kind = kinds.get(id(code))
            if kind is None:
                kind = self._classify(code)
            if kind == _PROJECT:
                break
            if kind == _LIBRARY and via is None:
                via = frame
            frame = frame.f_back
        if frame is None and via is None:
            return NOWHERE
        key = (
            0 if frame is None else id(frame.f_code),
            0 if frame is None else frame.f_lasti,
            0 if via is None else id(via.f_code),
            0 if via is None else via.f_lasti,
        )
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._places)
            self._places.append(Place(_spot(frame), _spot(via)))
        return number

    def resolve(self, number: int) -> tuple[Frame | None, Frame | None]:
        """The frames of a place: the project's, and the library's inside of it."""
        place = self._places[number]
        return _resolve(place.frame), _resolve(place.via)

    def is_project(self, code: CodeType) -> bool:
        """Whether the code is the project's own."""
        kind = self._kinds.get(id(code))
        return (self._classify(code) if kind is None else kind) == _PROJECT

    def is_internal(self, code: CodeType) -> bool:
        """Whether the code is torch's, devlint's or the standard library's."""
        kind = self._kinds.get(id(code))
        return (self._classify(code) if kind is None else kind) == _INTERNAL

    def _classify(self, code: CodeType) -> int:
        name = code.co_filename
        if name.startswith("<") and not name.startswith(("<stdin>", "<ipython", "<string>")):
            kind = _INTERNAL  # frozen modules, generated code
        else:
            path = os.path.abspath(name)
            if path.startswith(self._roots):
                kind = _PROJECT
            elif path.startswith(self._libraries):
                kind = _INTERNAL if path.startswith(self._internal) else _LIBRARY
            else:
                kind = _INTERNAL if path.startswith(self._internal) else _PROJECT
        self._alive.append(code)
        self._kinds[id(code)] = kind
        return kind


def resolve_frame(frame: FrameType) -> Frame:
    """The place that a live frame is at."""
    return _frame(Spot(frame.f_code, frame.f_lasti))


def resolve_spot(spot: Spot) -> Frame:
    """The place of an instruction."""
    return _frame(spot)


def _spot(frame: FrameType | None) -> Spot | None:
    return None if frame is None else Spot(frame.f_code, frame.f_lasti)


def _resolve(spot: Spot | None) -> Frame | None:
    return None if spot is None else _frame(spot)


def _frame(spot: Spot) -> Frame:
    code, instruction = spot
    name = code.co_filename
    file = name if name.startswith("<") else os.path.abspath(name)
    function = getattr(code, "co_qualname", code.co_name)
    if sys.version_info >= (3, 11):
        positions = list(code.co_positions())[instruction // 2] if instruction >= 0 else (None,) * 4
        line, end_line, column, end_column = positions
        if line is not None:
            return Frame(
                file=file, line=line, function=function, column=column, end_line=end_line, end_column=end_column
            )
    line = code.co_firstlineno
    for start, _, number in code.co_lines():
        if start > instruction:
            break
        line = number or line
    return Frame(file=file, line=line, function=function)


def _internal_directories() -> tuple[str, ...]:
    import devlint

    paths = sysconfig.get_paths()
    found = [os.path.dirname(devlint.__file__), paths["stdlib"], paths["platstdlib"], os.path.dirname(os.__file__)]
    torch = sys.modules.get("torch")
    if torch is not None and torch.__file__:
        found.append(os.path.dirname(torch.__file__))
    return tuple(_directory(path) for path in found)


def _library_directories() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    found = [paths["purelib"], paths["platlib"], *site.getsitepackages(), site.getusersitepackages()]
    return tuple(_directory(path) for path in found)


def _directory(path: str) -> str:
    return os.path.join(os.path.abspath(path), "")
