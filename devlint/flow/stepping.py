"""Functions that a loop of steps calls in every round: what they copy, each step copies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from devlint.sites import Site, Transfer

if TYPE_CHECKING:
    from devlint.flow.frame import Frame
    from devlint.flow.index import FunctionInfo


class Steps:
    """Who calls whom in a loop of steps, and which copies that makes part of each step."""

    def __init__(self) -> None:
        self._called: set[FunctionInfo] = set()
        self._makers: dict[int, FunctionInfo] = {}

    def called(self, frame: Frame, info: FunctionInfo) -> None:
        """A function is called; perhaps in every round of a loop."""
        if frame.machine.muted or frame.inlined or not frame.loops:
            return
        loop = frame.loops[-1]
        always = frame.branches <= loop.branches and not loop.continues
        if always and any(outer.step and not outer.encloses for outer in frame.loops):
            self._called.add(info)

    def made(self, frame: Frame, site: Site) -> None:
        """A copy that each call of its function makes."""
        if isinstance(site, Transfer) and frame.info is not None and not frame.branches and not frame.loops:
            self._makers[id(site)] = frame.info

    def told(self, sites: list[Site]) -> Iterator[Site]:
        """The sites, of which those in such functions say so."""
        for site in sites:
            if isinstance(site, Transfer) and self._makers.get(id(site)) in self._called:
                yield replace(site, scope=replace(site.scope, called=True))
            else:
                yield site
