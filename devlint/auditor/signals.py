"""Typed signals between the parts of an audit: events that many may hear of, and questions that one part answers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from devlint.auditor.frames import NOWHERE
from devlint.record import Mismatch

Handlers = tuple[Callable[[], object], ...]
"""Who hears of an event, in the order in which they subscribed; emitting one that nobody hears is one empty loop."""


class Listener:
    """A part of the audit which hooks into torch, and tells at the end what it saw.

    A subclass overrides what it has to do with: of the handlers (``on_...``) and of the answers only those that are
    overridden are subscribed and provided.
    """

    def install(self) -> None:
        """Hook in, by the session's patches if these will do; torch is there, the device must not be initialised."""

    def remove(self) -> None:
        """Undo what :meth:`install` did besides."""

    def describe(self) -> Mapping[str, object]:
        """What was seen so far: values for fields of :class:`devlint.record.Process`.  Called for snapshots too."""
        return {}

    # events

    def on_forward(self) -> None:
        """A module is called from outside any module."""

    def on_forward_due(self) -> None:
        """A loop has got as far as that such a call may follow."""

    def on_pass_begin(self) -> None:
        """The forward of a training step begins: a pass goes from there to the end of backward."""

    def on_pass_end(self) -> None:
        """The pass is over, if there was one."""

    def on_step_end(self) -> None:
        """A step has ended, and a pass with it."""

    def on_move(self) -> None:
        """A module is about to be moved or converted."""

    # answers

    def loader_of(self, tensor: Any) -> int | None:
        """The index of the loader whose latest batch holds the tensor."""
        return None

    def place_of_thread(self) -> int:
        """The place to blame for what a thread without any frame of the project does, such as a loader's."""
        return NOWHERE

    def places_copying(self, storage: int) -> Collection[int]:
        """The places which copied a storage (its ``_cdata``) again although it had not changed."""
        return ()

    def is_optimized(self, parameter: Any) -> bool:
        """Whether an optimizer has the parameter."""
        return False

    def explain(self, error: BaseException) -> Mismatch | None:
        """What a run died of, if that was tensors on different devices; asked once it has."""
        return None


class Signals:
    """The events of a session, each with those who hear of it: whoever knows of one calls its handlers."""

    def __init__(self) -> None:
        self.forward: Handlers = ()
        self.forward_due: Handlers = ()
        self.pass_begin: Handlers = ()
        self.pass_end: Handlers = ()
        self.step_end: Handlers = ()
        self.move: Handlers = ()

    def subscribe(self, listener: Listener) -> None:
        """Let a listener hear of the events whose handlers it overrides."""
        for event, handlers in vars(self).items():
            name = f"on_{event}"
            if _overrides(listener, name):
                setattr(self, event, (*handlers, getattr(listener, name)))


class Services:
    """The questions of a session, each with the listener that answers; without one, nothing is known."""

    def __init__(self) -> None:
        nobody = Listener()
        self.loader_of = nobody.loader_of
        self.place_of_thread = nobody.place_of_thread
        self.places_copying = nobody.places_copying
        self.is_optimized = nobody.is_optimized
        self.explain = nobody.explain

    def provide(self, listener: Listener) -> None:
        """Let a listener answer the questions whose answers it overrides."""
        for question in vars(self):
            if _overrides(listener, question):
                setattr(self, question, getattr(listener, question))


def _overrides(listener: Listener, name: str) -> bool:
    return getattr(type(listener), name) is not getattr(Listener, name)
