"""Whose code is running: from a stack to a place in the project, cheaply enough for every copy."""

from __future__ import annotations

import os
import re
import site
import sys
import sysconfig
import threading
from collections.abc import Iterable
from types import CodeType, FrameType
from typing import NamedTuple

from devlint._about import PACKAGE
from devlint.record import Frame

_INTERNAL, _LIBRARY, _PROJECT, _TORCH = 0, 1, 2, 3
NOWHERE = 0
"""The :class:`Place` of an event without any frame of the project or a library."""

_TYPED = ("<stdin>", "<python-input", "<ipython-input", "<console>", "<input>", "<doctest ", "<command-")
"""How the file of what a user typed is called; other names like these are generated code (``<string>``) or frozen."""
INSTALLED = re.compile(r"[/\\](?:site|dist)-packages[/\\](?!.*[/\\](?:site|dist)-packages[/\\])([^/\\.]*)")
TORCHES = frozenset({"torch", "torchgen", "functorch"})
OPERATIONS = re.compile(r"[/\\]torch[/\\](?:optim|distributions|nn(?![/\\](?:modules[/\\]module|parameter)\.py))[/\\]")
"""Where torch's own Python computes, and by which way a copy or a wait came about is worth knowing: a layer, an
optimizer, the checks of a distribution.  All else of torch hands over what the caller asked for."""
_MOVES = frozenset({"_apply", "to", "cuda", "cpu", "pin_memory"})
"""Methods there that hand over, too: a layer's own way of being moved, and that of a packed sequence."""
_COMPILED = re.compile(r"[/\\]torchinductor_[^/\\]*[/\\]")
"""Where torch.compile keeps the code that it generates."""

try:
    _STARTED_IN = os.getcwd()
except OSError:  # the directory was deleted
    _STARTED_IN = os.sep


class Spot(NamedTuple):
    """A code object and the instruction in it."""

    code: CodeType
    instruction: int


class Place(NamedTuple):
    """The innermost frame of the project, and within it the innermost of a library; of torch only if there is none."""

    frame: Spot | None
    via: Spot | None


class Frames:
    """Finds the place where something happens; a place is a small number until somebody wants to read it.

    ``roots`` are directories that are the project's even if they lie among installed packages (``-m package``).
    torch, devlint, the standard library and generated code are nobody's; what is installed is a library's; the rest is
    the project's.  Where one directory lies in another (a virtual environment in the project), the inner one counts.
    """

    def __init__(self, roots: Iterable[str] = ()) -> None:
        self._directories = _directories(roots)
        # By id, since hashing a code object takes as long as the rest; `_alive` keeps the ids from being used again.
        self._kinds: dict[int, int] = {}
        self._alive: list[CodeType] = []
        self._numbers: dict[tuple[int, int, int, int], int] = {}
        self._places: list[Place] = [Place(None, None)]
        self._lock = threading.Lock()

    def here(self) -> int:
        """The number of the place that called, be it by way of devlint and torch."""
        return self.at(sys._getframe(1))

    def at(self, frame: FrameType | None) -> int:
        """The number of the place of a frame, or of the frames that called it."""
        via: FrameType | None = None
        torch: FrameType | None = None
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
            elif kind == _TORCH and torch is None:
                torch = frame
            frame = frame.f_back
        via = via or torch
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
            number = self._new(key, _spot(frame), _spot(via))
        return number

    def _new(self, key: tuple[int, int, int, int], frame: Spot | None, via: Spot | None) -> int:
        """The number of a place that was not met by this key before."""
        # as the interpreter adapts to a call, another instruction of the same expression may make it
        same = (key[0], frame.instruction if frame else 0, key[2], via.instruction if via else 0)
        with self._lock:
            number = self._numbers.get(same)
            if number is None:
                self._places.append(Place(frame, via))
                number = self._numbers[same] = len(self._places) - 1
            self._numbers[key] = number
        return number

    def resolve(self, number: int) -> tuple[Frame | None, Frame | None]:
        """The frames of a place: the project's, and the library's inside of it."""
        place = self._places[number]
        return place.frame and resolve_spot(place.frame), place.via and resolve_spot(place.via)

    def frame(self, number: int) -> Frame | None:
        """The project's frame of a place, or else the library's."""
        project, via = self.resolve(number)
        return project or via

    def is_project(self, code: CodeType) -> bool:
        """Whether the code is the project's own."""
        kind = self._kinds.get(id(code))
        return (self._classify(code) if kind is None else kind) == _PROJECT

    def is_internal(self, code: CodeType) -> bool:
        """Whether the code is torch's, devlint's or the standard library's."""
        kind = self._kinds.get(id(code))
        return (self._classify(code) if kind is None else kind) in (_INTERNAL, _TORCH)

    def _classify(self, code: CodeType) -> int:
        name = code.co_filename
        if name.startswith("<") and not name.startswith(_TYPED):
            # not remembered, as such code may be generated anew in every step
            return _INTERNAL
        kind = _PROJECT if name.startswith("<") else self._kind(os.path.normcase(_absolute(name)))
        if kind == _TORCH and code.co_name in _MOVES:
            kind = _INTERNAL
        self._alive.append(code)
        self._kinds[id(code)] = kind
        return kind

    def _kind(self, path: str) -> int:
        """Of the directories that the file is in, the innermost one counts."""
        found = max((len(directory), kind) for directory, kind in self._directories if path.startswith(directory))
        installed = INSTALLED.search(path)
        if installed is not None and installed.start(1) >= found[0]:
            return _of_torch(path) if installed[1] in TORCHES else _LIBRARY
        if found[1] == _PROJECT and _COMPILED.search(path):
            return _INTERNAL
        if found[1] == _PROJECT and path.startswith(_torch()):
            return _of_torch(path)
        return found[1]


def _of_torch(path: str) -> int:
    return _TORCH if OPERATIONS.search(path) else _INTERNAL


def _spot(frame: FrameType | None) -> Spot | None:
    """Where a frame is: the first instruction of the expression that runs, as far as Python tells expressions apart."""
    if frame is None:
        return None
    code, instruction = frame.f_code, frame.f_lasti
    if sys.version_info >= (3, 11) and instruction >= 0:
        positions = list(code.co_positions())
        instruction = 2 * positions.index(positions[instruction // 2])
    return Spot(code, instruction)


def resolve_spot(spot: Spot) -> Frame:
    """The place of an instruction."""
    line, end_line, column, end_column = positions_of(spot)
    return Frame(
        file=file_of(spot.code.co_filename),
        line=line_of(spot) if line is None else line,
        function=qualified_name(spot.code),
        column=column,
        end_line=end_line,
        end_column=end_column,
    )


def qualified_name(code: CodeType) -> str:
    """The name of a function, before Python 3.11 without those around it."""
    return getattr(code, "co_qualname", code.co_name)


def positions_of(spot: Spot) -> tuple[int | None, int | None, int | None, int | None]:
    """First and last line, first and last column of the expression of an instruction; unknown before Python 3.11."""
    if sys.version_info >= (3, 11) and spot.instruction >= 0:
        return list(spot.code.co_positions())[spot.instruction // 2]
    return None, None, None, None


def line_of(spot: Spot) -> int:
    """The line of an instruction."""
    line = spot.code.co_firstlineno
    for start, _, number in spot.code.co_lines():
        if start > spot.instruction:
            break
        line = number or line
    return line


def file_of(name: str) -> str:
    """The file that a code object names; what was typed into Python has no file, and keeps its name."""
    return name if name.startswith("<") else _absolute(name)


def _absolute(name: str) -> str:
    """The script may have changed the directory since."""
    return os.path.normpath(os.path.join(_STARTED_IN, name))


def _directories(roots: Iterable[str]) -> list[tuple[str, int]]:
    """Directories and what they hold; all that is nowhere else is the project's."""
    paths = sysconfig.get_paths()
    libraries = {paths["purelib"], paths["platlib"], site.getusersitepackages()}
    libraries.update(getattr(site, "getsitepackages", list)())  # missing in old virtual environments
    internal = {PACKAGE, os.path.dirname(os.__file__), paths["stdlib"], paths["platstdlib"]}
    kinds = {_INTERNAL: internal, _LIBRARY: libraries, _PROJECT: set(roots)}
    found = {spelled: kind for kind, names in kinds.items() for name in names for spelled in _spellings(name)}
    return [*found.items(), ("", _PROJECT)]


def _spellings(directory: str) -> set[str]:
    """A directory as it was named, and as it is without symbolic links."""
    return {os.path.join(os.path.normcase(path), "") for path in (_absolute(directory), os.path.realpath(directory))}


def _torch() -> tuple[str, ...]:
    """Where torch is, if it is not installed but used from where it was built."""
    file = getattr(sys.modules.get("torch"), "__file__", None)
    return tuple(_spellings(os.path.dirname(file))) if file else ()
