"""Functions that a loop of steps calls in every round: what they copy, each step copies."""

from __future__ import annotations

import ast

from devlint.flow.catalog.schema import Row
from devlint.flow.core.call import Call
from devlint.flow.core.events import Observer
from devlint.flow.core.interpreter import Frame, Interpreter
from devlint.flow.program.symbols import FunctionInfo
from devlint.immutable import replace
from devlint.sites.base import Site
from devlint.sites.transfers import Transfer


class Steps(Observer):
    """Who calls whom in a loop of steps, and which copies that makes part of each step."""

    shared = True

    def __init__(self, interpreter: Interpreter) -> None:
        self._named: dict[str, list[FunctionInfo]] = {}
        for info in interpreter.index.functions.values():
            if info.owner is None:
                self._named.setdefault(info.name, []).append(info)
        self._called: set[FunctionInfo] = set()
        self._makers: dict[int, FunctionInfo] = {}

    def called(self, frame: Frame, info: FunctionInfo) -> None:
        """A function is called; perhaps in every round of a loop."""
        if frame.interpreter.muted or frame.inlined or not frame.loops:
            return
        loop = frame.loops[-1]
        always = frame.branches <= loop.branches and not loop.continues
        if always and any(outer.step and not outer.encloses for outer in frame.loops):
            self._called.add(info)

    def on_unfollowed_call(self, frame: Frame, call: Call, path: str, row: Row | None) -> None:
        """A name is called of which it is not known what it means by then: perhaps what the file defines under it."""
        called = call.node.func
        if not path and frame.loops and isinstance(called, ast.Name):
            for info in self._named.get(called.id, ()):
                self.called(frame, info)

    def made(self, frame: Frame, site: Site) -> None:
        """A copy that each call of its function makes."""
        if isinstance(site, Transfer) and frame.info is not None and not frame.branches and not frame.loops:
            self._makers[id(site)] = frame.info

    def told(self, site: Site) -> Site:
        """A site, which says so if it is in such a function."""
        if isinstance(site, Transfer) and self._makers.get(id(site)) in self._called:
            return replace(site, scope=replace(site.scope, called=True))
        return site
