"""Probes: calls that are only tried out, and what the code that they enter would claim of them."""

from __future__ import annotations

from dataclasses import dataclass

from devlint.flow.core.interpreter import Component, Frame, Interpreter
from devlint.sites.base import Site
from devlint.sites.placement import Forward, Operation


@dataclass(slots=True)
class Listening:
    """What somebody had heard when somebody else began to listen."""

    heard: list[Operation | Forward] | None
    interpreter: Interpreter | None
    level: int


class Overheard(Component):
    """What muted code claims, for whoever listens."""

    shared = True

    def __init__(self, interpreter: Interpreter) -> None:
        self._heard: list[Operation | Forward] | None = None
        self._interpreter: Interpreter | None = None
        self._level = 0

    def claim(self, site: Site, frame: Frame) -> None:
        """A claim is made in a frame."""
        if self._heard is None or not isinstance(site, (Operation, Forward)):
            return
        interpreter = frame.interpreter
        if self._interpreter is None or (
            interpreter is self._interpreter and interpreter.muted == self._level and not frame.silent
        ):
            self._heard.append(site)

    def begin(self, interpreter: Interpreter | None = None) -> Listening:
        """Listen, perhaps only to what one file says of itself, and not where it merely tries something out.

        What was listened to before is returned, and goes on with :meth:`end`.
        """
        before = Listening(self._heard, self._interpreter, self._level)
        self._heard, self._interpreter, self._level = (
            [],
            interpreter,
            interpreter.muted if interpreter is not None else 0,
        )
        return before

    def end(self, before: Listening) -> list[Operation | Forward]:
        """What was claimed since :meth:`begin`, which had returned ``before``."""
        heard = self._heard or []
        self._heard, self._interpreter, self._level = before.heard, before.interpreter, before.level
        return heard
