"""Functions that the file itself uses only where an accelerator is available: what they say is guarded there."""

from __future__ import annotations

import ast
from functools import cached_property

from devlint.flow.core.interpreter import Component, Frame, Interpreter
from devlint.flow.program.symbols import FunctionInfo
from devlint.flow.syntax import nodes
from devlint.immutable import replace
from devlint.sites.base import Site
from devlint.sites.devices import ApiCall, Literal
from devlint.sites.transfers import Transfer


class Confined(Component):
    """Where the private functions of a file are called, or handed on, and what they do themselves."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._tree = interpreter.tree
        self._uses: dict[FunctionInfo, dict[tuple[int, int], bool]] = {}
        self._makers: dict[int, FunctionInfo] = {}

    def used(self, frame: Frame, node: ast.Name, info: FunctionInfo) -> None:
        """The code speaks of a function; perhaps only where an accelerator is."""
        if info.private and frame.info is not info and info.index is frame.interpreter.index:
            places = self._uses.setdefault(info, {})
            place = (node.lineno, node.col_offset)
            places[place] = places.get(place, True) and frame.state.accelerated

    def made(self, frame: Frame, site: Site) -> None:
        """What a private function does, whatever is available."""
        if frame.info is not None and frame.info.private and isinstance(site, (Transfer, Literal, ApiCall)):
            self._makers[id(site)] = frame.info

    def told(self, made: int, site: Site) -> Site:
        """A site, which says so if its function is only used where an accelerator is; ``made`` is what it was first."""
        info = self._makers.get(made)
        if info is None or not isinstance(site, (Transfer, Literal, ApiCall)) or site.scope.guarded:
            return site
        return replace(site, scope=replace(site.scope, guarded=True)) if info in self._functions else site

    @cached_property
    def _functions(self) -> set[FunctionInfo]:
        """The functions of which every mention in the file, but for their own, is guarded."""
        found = {info for info, places in self._uses.items() if all(places.values())}
        if not found:
            return found
        spoken = {info.name for info in found}
        mentions = [node for node in nodes.walk(self._tree) if isinstance(node, ast.Name) and node.id in spoken]
        return {info for info in found if all(self._known(info, node) for node in mentions if node.id == info.name)}

    def _known(self, info: FunctionInfo, node: ast.Name) -> bool:
        """Whether a mention of a function is one that was followed, or its own."""
        inside = info.node.lineno <= node.lineno <= (info.node.end_lineno or 0)
        return inside or (node.lineno, node.col_offset) in self._uses[info]
