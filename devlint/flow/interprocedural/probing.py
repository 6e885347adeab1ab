"""Probes: calls that are only tried out, and what the code that they enter would claim of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from devlint.flow.core.interpreter import Component, Frame, Interpreter
from devlint.sites.base import Site
from devlint.sites.placement import Forward, Operation


class Probes(Component):
    """What muted code claims, for whoever began to listen last."""

    shared = True

    def __init__(self, interpreter: Interpreter) -> None:
        self._listening: list[tuple[Interpreter | None, int, list[Operation | Forward]]] = []

    def claim(self, site: Site, frame: Frame) -> None:
        """A claim is made in a frame."""
        if self._listening and isinstance(site, (Operation, Forward)):
            one, level, heard = self._listening[-1]
            if one is None or (frame.interpreter is one and one.muted == level and not frame.silent):
                heard.append(site)

    @contextmanager
    def listen(self, interpreter: Interpreter | None = None) -> Iterator[list[Operation | Forward]]:
        """Hear what is claimed; perhaps only what one file says of itself, and not where it merely tries things out."""
        heard: list[Operation | Forward] = []
        self._listening.append((interpreter, 0 if interpreter is None else interpreter.muted, heard))
        yield heard
        self._listening.pop()
