"""Processes that ask for their rank before there is a group that they have one in."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devlint.flow.catalog.concepts import ASKS_GROUP, ENDS_GROUP, MAKES_GROUP
from devlint.flow.core.call import Call
from devlint.flow.core.events import Observer
from devlint.flow.core.interpreter import Frame, Interpreter
from devlint.flow.core.scope import scope_of
from devlint.flow.program.symbols import FunctionInfo
from devlint.flow.syntax import nodes
from devlint.sites.base import Step
from devlint.sites.distributed import Ungrouped

_BRANCHING = (ast.If, ast.IfExp, ast.BoolOp, ast.For, ast.While, ast.Try, ast.Match, ast.comprehension, ast.Lambda)


class EarlyRanks(Observer):
    """Questions for the process group of a function which makes it only further down."""

    def __init__(self, interpreter: Interpreter) -> None:
        # where groups come and go, another one may be there
        self._final = ENDS_GROUP not in interpreter.own_text
        self._asked: dict[FunctionInfo | None, tuple[Call, str]] = {}
        self._early: dict[ast.AST, Ungrouped] = {}

    def on_library_call(self, frame: Frame, call: Call, path: str) -> None:
        """A process group is asked for something, or made, on every path through the function."""
        if path not in ASKS_GROUP and path != MAKES_GROUP:
            return
        around = (outer for outer in frame.inside if isinstance(outer, _BRANCHING))
        if not self._final or any(nodes.holds(outer, call.node) for outer in around):
            return
        if path != MAKES_GROUP and not nodes.given(call.node):
            self._asked.setdefault(frame.info, (call, path))
        elif path == MAKES_GROUP and frame.info in self._asked:
            asked, name = self._asked[frame.info]
            made = Step(call.node, "the process group is made here")
            self._early.setdefault(asked.node, Ungrouped(asked.node, scope_of(frame), name, made))

    def sites(self) -> Iterator[Ungrouped]:
        """A site for the first such question of each function."""
        yield from self._early.values()
