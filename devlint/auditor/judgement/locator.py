"""From a place in a record to the code: which expression was running there, and what surrounds it.

torch is not needed, nor that the code is still the one that ran: where it is not, the place has a line and no tree.
"""

from __future__ import annotations

import ast
import hashlib
import linecache
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from devlint.flow.syntax.nodes import own
from devlint.record import Frame
from devlint.sites.base import Scope
from devlint.source.file_kinds import is_test_file
from devlint.source.text import ParseFailure, split_lines
from devlint.source.tree import Source

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_Loop = ast.For | ast.AsyncFor | ast.While
_SETS_UP = frozenset({"__init__", "__new__", "__post_init__", "setup", "configure_model"})


@dataclass(frozen=True, slots=True)
class Location:
    """A place in the code.

    ``node`` is the expression that was running, its statement where only the line is known, or a stand-in that has
    nothing but a position where the code is not at hand; ``exact`` says that it is the expression.
    """

    source: Source
    node: ast.AST
    scope: Scope
    exact: bool


class Locator:
    """Finds places in files that are read once; ``recorded`` are lines of code as they were when they ran."""

    def __init__(self, recorded: Mapping[str, Mapping[int, str]] | None = None) -> None:
        self._recorded = recorded or {}
        self._files: dict[str, _File] = {}
        self._stand_ins: dict[ast.AST, Source] = {}

    def locate(self, frame: Frame, calls: Collection[str] = ()) -> Location:
        """Where ``frame`` was; where only its line is known, the call of one of the names in ``calls`` in that line."""
        file = self._file(frame.file)
        node = file.find(frame, calls)
        exact = isinstance(node, ast.expr)
        if node is None:
            node = _stand_in(frame, file.source)
            self._stand_ins[node] = file.source
        return Location(file.source, node, file.scope(node), exact)

    def home(self, node: ast.AST) -> Source:
        """The file that a node of a location, or a part of it, stands in."""
        known = self._stand_ins.get(node)
        return known or next(file.source for file in self._files.values() if node in file)

    def lines(self, file: str, first: int, last: int) -> dict[int, str]:
        """The lines of code from ``first`` to ``last``, by number; those that are not known are left out."""
        known = self._file(file)
        lines = known.source.lines if known.source.text else []
        # of a file that is not what ran any more there are gaps between the lines that were recorded
        recorded = {} if known.data else self._recorded.get(file, {})
        rows = range(max(first, 1), min(last, len(lines)) + 1)
        return {row: lines[row - 1] for row in rows if not recorded or row in recorded}

    def digest(self, file: str) -> str:
        """The SHA-256 of a file's content in hexadecimal, empty where that is not at hand."""
        data = self._file(file).data
        return hashlib.sha256(data).hexdigest() if data else ""

    def _file(self, name: str) -> _File:
        known = self._files.get(name)
        if known is None:
            known = self._files[name] = _File(*_read(name, self._recorded.get(name, {})))
        return known


class _File:
    """A file's tree, made ready for looking things up; no ``data`` where it is no longer what ran."""

    def __init__(self, source: Source, data: bytes) -> None:
        self.source = source
        self.data = data
        self._test = is_test_file(source.filename)
        self._parents: dict[ast.AST, ast.AST] = {}
        self._spans: dict[tuple[int, int, int, int], ast.AST] = {}
        self._calls: dict[tuple[int, int], ast.Call] = {}
        self._statements: list[ast.stmt] = []
        for node in ast.walk(source.tree):
            self._parents.update((child, node) for child in ast.iter_child_nodes(node))
            if isinstance(node, ast.stmt):
                self._statements.append(node)
            if isinstance(node, ast.expr | ast.stmt):
                # inner nodes come later: of a statement and its expression, the expression stays
                end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
                self._spans[(node.lineno, node.col_offset, end_line, end_column)] = node
            if isinstance(node, ast.Call):
                self._calls[(end_line, end_column)] = node

    def __contains__(self, node: ast.AST) -> bool:
        return node in self._parents

    def find(self, frame: Frame, calls: Collection[str]) -> ast.AST | None:
        """The node at a frame, ``None`` where there is none."""
        if frame.column is None or frame.end_line is None or frame.end_column is None:
            return self._in_line(frame.line, calls)
        node = self._spans.get((frame.line, frame.column, frame.end_line, frame.end_column))
        if node is None:
            # the position of `value\n.method()` begins at the name of the method
            call = self._calls.get((frame.end_line, frame.end_column))
            node = call if call is not None and call.lineno <= frame.line else None
        if isinstance(node, ast.For | ast.AsyncFor):
            # what a loop does between its rounds is to ask for the next item
            return node.iter
        return node or self._in_line(frame.line, calls)

    def _in_line(self, line: int, calls: Collection[str]) -> ast.AST | None:
        """The one call of a name in a line, else the innermost statement."""
        found = [call for call in self._calls.values() if name_of(call) in calls and _covers(call, line)]
        if len(found) == 1:
            return found[0]
        covering = [node for node in self._statements if _covers(node, line)]
        return min(covering, key=lambda node: (node.end_lineno or 0) - node.lineno, default=None)

    def scope(self, node: ast.AST) -> Scope:
        """What surrounds a node."""
        function, owner, loop = "", None, None
        handler = sometimes = False
        inner, outer = node, self._parents.get(node)
        while outer is not None:
            if isinstance(outer, ast.ClassDef):
                owner = outer
                break
            if isinstance(outer, _Function) and not function:
                function = getattr(outer, "name", "<lambda>")
            handler = handler or isinstance(outer, ast.ExceptHandler)
            if not function and loop is None:
                each_round = isinstance(outer, _Loop) and (inner in outer.body or inner is getattr(outer, "test", None))
                loop = outer if isinstance(outer, _Loop) and each_round else None
                sometimes = sometimes or (loop is None and _chooses(outer, inner))
            inner, outer = outer, self._parents.get(outer)
        # whether the bases of its class show it to be a module
        derived = any(ast.unparse(base).endswith("Module") for base in owner.bases) if owner else False
        return Scope(
            function=function,
            owner=owner.name if owner else "",
            module=derived and function not in _SETS_UP,
            loop=loop,
            handler=handler,
            test=self._test,
            devices=self._devices(node),
            sometimes=sometimes and loop is not None,
        )

    def _devices(self, node: ast.AST) -> tuple[str, ...]:
        """The name of the device at hand, as far as the code calls it ``device``."""
        place: ast.AST | None = node
        while place is not None:
            if isinstance(place, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module) and _names_device(place):
                return ("device",)
            place = self._parents.get(place)
        return ()


def _names_device(place: ast.FunctionDef | ast.AsyncFunctionDef | ast.Module) -> bool:
    given = [] if isinstance(place, ast.Module) else ast.walk(place.args)
    arguments = (node.arg for node in given if isinstance(node, ast.arg))
    bound = (inner.id for inner in own(place) if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store))
    return "device" in arguments or "device" in bound


def _read(name: str, recorded: Mapping[int, str]) -> tuple[Source, bytes]:
    """The file as it is with its content, where it still is what ran; else what was recorded of it, without a tree."""
    text = _text(name)
    if text is not None:
        source = Source.parse(text, name)
        if not isinstance(source, ParseFailure) and _unchanged(source.lines, recorded):
            return source, text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
        if not recorded:
            lines = split_lines(text) if isinstance(text, str) else text.decode("utf-8", "replace").splitlines()
            recorded = dict(enumerate(lines, 1))
    rows = "\n".join(recorded.get(row, "") for row in range(1, max(recorded, default=0) + 1))
    return Source(name, rows, ast.Module([], [])), b""


def whole(name: str, recorded: Mapping[int, str]) -> list[str] | None:
    """All lines of a file that still holds those that were recorded of it; ``None`` of any other."""
    source, data = _read(name, recorded)
    if not recorded or not data:
        return None
    # after the last line end there is no line
    return source.lines if source.lines[-1:] != [""] else source.lines[:-1]


def _text(name: str) -> bytes | str | None:
    """The content of a file, or what was typed where that is no file; ``None`` where neither can be had."""
    try:
        if not name.startswith("<") and os.path.exists(name):
            if not os.path.isfile(name):  # a pipe or a device, which might never end
                return None
            with open(name, "rb") as stream:
                return stream.read()
        # the cells of a notebook, and what came through the standard input
        return "".join(linecache.getlines(name)) or None
    except (OSError, ValueError):  # ValueError: a null character
        return None


def _unchanged(lines: list[str], recorded: Mapping[int, str]) -> bool:
    return all(row <= len(lines) and lines[row - 1] == text for row, text in recorded.items())


def _stand_in(frame: Frame, source: Source) -> ast.AST:
    """A node at the place of a frame whose code is not known; without columns, it is the whole line."""
    row, start, end_row, end = frame.line, frame.column, frame.end_line, frame.end_column
    if start is None or end_row is None or end is None:
        line = source.lines[row - 1] if 0 < row <= len(source.lines) else ""
        whole = line.encode("utf-8", "surrogatepass")
        start, end_row, end = len(whole) - len(whole.lstrip()), row, len(whole.rstrip())
    if row == end_row:
        end = max(end, start + 1)
    return ast.Name("", ast.Load(), lineno=row, col_offset=start, end_lineno=end_row, end_col_offset=end)


def name_of(call: ast.Call) -> str:
    """The last part of the name that is called."""
    return getattr(call.func, "attr", "") or getattr(call.func, "id", "")


def _covers(node: ast.expr | ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def _chooses(outer: ast.AST, inner: ast.AST) -> bool:
    """Whether ``inner`` is a branch of ``outer`` rather than its condition."""
    if isinstance(outer, ast.If | ast.IfExp):
        return inner is not outer.test
    return isinstance(outer, ast.ExceptHandler | ast.match_case)
