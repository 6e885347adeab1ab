"""Call contexts: what a function does in each step, or only where an accelerator is, as all that use it say."""

from __future__ import annotations

import ast
from functools import cached_property

from devlint.flow.catalog.schema import Row
from devlint.flow.core.call import Call
from devlint.flow.core.events import Observer
from devlint.flow.core.interpreter import Frame, Interpreter
from devlint.flow.program.symbols import FunctionInfo
from devlint.flow.syntax import nodes
from devlint.immutable import replace
from devlint.sites.base import Site
from devlint.sites.devices import ApiCall, Literal
from devlint.sites.transfers import Transfer


class CallContexts(Observer):
    """Where the functions of a file are called, or spoken of, and which of their sites hang on that."""

    shared = True
    wants_inlined = True
    wants_quiet = True

    def __init__(self, interpreter: Interpreter) -> None:
        self._tree = interpreter.tree
        self._named: dict[str, list[FunctionInfo]] = {}
        for info in interpreter.index.functions.values():
            if info.owner is None:
                self._named.setdefault(info.name, []).append(info)
        self._in_steps: set[FunctionInfo] = set()
        self._mentions: dict[FunctionInfo, dict[tuple[int, int], bool]] = {}
        self._copies: dict[int, FunctionInfo] = {}
        """Copies that each call of a function makes, by identity."""
        self._private: dict[int, FunctionInfo] = {}
        """What private functions do, whatever is available."""

    def called(self, frame: Frame, info: FunctionInfo) -> None:
        """A function is called; perhaps in every round of a loop."""
        if frame.interpreter.muted or frame.inlined or not frame.loops:
            return
        loop = frame.loops[-1]
        always = frame.branches <= loop.branches and not loop.continues
        if always and any(outer.step and not outer.encloses for outer in frame.loops):
            self._in_steps.add(info)

    def on_unfollowed_call(self, frame: Frame, call: Call, path: str, row: Row | None) -> None:
        """A name is called of which it is not known what it means by then: perhaps what the file defines under it."""
        called = call.node.func
        if not path and frame.loops and isinstance(called, ast.Name):
            for info in self._named.get(called.id, ()):
                self.called(frame, info)

    def on_function(self, frame: Frame, node: ast.Name, info: FunctionInfo) -> None:
        """The code speaks of a function, to call it or to hand it on; perhaps only where an accelerator is."""
        if info.private and frame.info is not info and info.index is frame.interpreter.index:
            places = self._mentions.setdefault(info, {})
            place = (node.lineno, node.col_offset)
            places[place] = places.get(place, True) and frame.state.accelerated

    def made(self, frame: Frame, site: Site) -> None:
        """A site is made, which may hang on who calls its function."""
        info = frame.info
        if info is not None and isinstance(site, Transfer) and not frame.branches and not frame.loops:
            self._copies[id(site)] = info
        if info is not None and info.private and isinstance(site, (Transfer, Literal, ApiCall)):
            self._private[id(site)] = info

    def told(self, site: Site) -> Site:
        """A site, with what is known once all calls of its function are."""
        made = id(site)
        if isinstance(site, Transfer) and self._copies.get(made) in self._in_steps:
            site = replace(site, scope=replace(site.scope, called=True))
        if isinstance(site, (Transfer, Literal, ApiCall)) and self._private.get(made) in self._guarded:
            site = replace(site, scope=replace(site.scope, guarded=True))
        return site

    @cached_property
    def _guarded(self) -> set[FunctionInfo]:
        """The functions of which every mention in the file, but for their own, is guarded."""
        found = {info for info, places in self._mentions.items() if all(places.values())}
        spoken = {info.name for info in found}
        everywhere = nodes.walk(self._tree) if found else ()
        mentions = [node for node in everywhere if isinstance(node, ast.Name) and node.id in spoken]
        return {info for info in found if all(self._followed(info, node) for node in mentions if node.id == info.name)}

    def _followed(self, info: FunctionInfo, node: ast.Name) -> bool:
        """Whether a mention of a function is one that was seen, or its own."""
        inside = info.node.lineno <= node.lineno <= (info.node.end_lineno or 0)
        return inside or (node.lineno, node.col_offset) in self._mentions[info]
