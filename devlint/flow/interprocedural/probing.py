"""Probes: calls that are only tried out, and what the code that they enter would claim of them."""

from __future__ import annotations

from devlint.flow.core.interpreter import Component, Frame, Interpreter
from devlint.sites.base import Site
from devlint.sites.placement import Forward, Operation


class Probe:
    """What somebody hears; perhaps only what one file says of itself, and not where it merely tries something out."""

    def __init__(self, interpreter: Interpreter | None, before: Probe | None) -> None:
        self.heard: list[Operation | Forward] = []
        self.before = before
        self._interpreter = interpreter
        self._level = 0 if interpreter is None else interpreter.muted

    def hears(self, frame: Frame) -> bool:
        """Whether what is claimed in a frame is meant."""
        one = self._interpreter
        return one is None or (frame.interpreter is one and one.muted == self._level and not frame.silent)


class Probes(Component):
    """What muted code claims, for whoever began to listen last."""

    shared = True

    def __init__(self, interpreter: Interpreter) -> None:
        self._now: Probe | None = None

    def claim(self, site: Site, frame: Frame) -> None:
        """A claim is made in a frame."""
        if self._now is not None and isinstance(site, (Operation, Forward)) and self._now.hears(frame):
            self._now.heard.append(site)

    def begin(self, interpreter: Interpreter | None = None) -> Probe:
        """Listen until :meth:`end`."""
        self._now = Probe(interpreter, self._now)
        return self._now

    def end(self, listening: Probe) -> list[Operation | Forward]:
        """What was claimed since :meth:`begin`, which had returned ``listening``."""
        self._now = listening.before
        return listening.heard
