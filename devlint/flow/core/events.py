"""Events of the interpreter: what happens while a file is read, and the observers who hear of it.

An observer overrides the handlers of the events that it wants to hear; what nobody hears costs one look at an empty
list.  Observers make sites or collect for :meth:`Observer.sites`; none of them changes what the interpreter knows.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devlint.flow.core.interpreter import Component, Frame, Interpreter
from devlint.flow.domain.state import State
from devlint.flow.domain.values import Value
from devlint.sites.base import Site


class Observer(Component):
    """A detector.  It hears of what is only tried out, or run for a caller, if it says so: ``wants_inlined``."""

    wants_inlined = False

    def __init__(self, interpreter: Interpreter) -> None:
        pass

    def on_branch(self, frame: Frame, node: ast.If, before: State, then: State, other: State) -> None:
        """The two paths of a branch are about to meet again; ``before`` is the state in front of it."""

    def on_choice(self, frame: Frame, node: ast.IfExp, then: Value, other: Value) -> None:
        """A conditional expression has two values."""

    def sites(self) -> Iterator[Site]:
        """What is to be told once the file has been read to its end."""
        return iter(())


HANDLERS = tuple(name for name in vars(Observer) if name.startswith("on_"))


class Events(Component):
    """Who hears of what in one file: for each handler the observers that override it, in their order of priority."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._all: dict[str, list[Observer]] = {name: [] for name in HANDLERS}
        self._alone: dict[str, list[Observer]] = {name: [] for name in HANDLERS}

    def subscribe(self, observer: Observer) -> None:
        """Let an observer hear of the events that it handles."""
        for name in HANDLERS:
            if getattr(type(observer), name) is not getattr(Observer, name):
                self._alone[name].append(observer)
                if observer.wants_inlined:
                    self._all[name].append(observer)

    def heard(self, frame: Frame, name: str) -> list[Observer]:
        """Who hears of an event in a frame."""
        return (self._all if frame.inlined or frame.interpreter.muted else self._alone)[name]


def branch(frame: Frame, node: ast.If, before: State, then: State, other: State) -> None:
    """Tell of the two paths of a branch."""
    for observer in frame.component(Events).heard(frame, "on_branch"):
        observer.on_branch(frame, node, before, then, other)


def choice(frame: Frame, node: ast.IfExp, then: Value, other: Value) -> None:
    """Tell of the two values of a conditional expression."""
    for observer in frame.component(Events).heard(frame, "on_choice"):
        observer.on_choice(frame, node, then, other)
