"""One process under audit: who listens and answers, what was found, and what happens when devlint itself fails."""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from devlint.auditor.frames import NOWHERE, Frames
from devlint.auditor.ledger import Ledger
from devlint.auditor.patches import Patches
from devlint.record import Ending, Mismatch, Process

Handlers = tuple[Callable[[], object], ...]
"""Who hears of an event, in the order in which they subscribed; emitting one that nobody hears is one empty loop."""


def emit(handlers: Handlers) -> None:
    """Tell of an event all who hear of it."""
    for handle in handlers:
        handle()


class Listener:
    """A part of the audit which hooks into torch, and tells at the end what it saw.

    A subclass overrides what it has to do with: of the handlers (``on_...``) and of the answers only those that are
    overridden are subscribed and provided.
    """

    def install(self) -> None:
        """Hook in, by way of the session's patches; torch is there, the device must not be initialised."""

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
    """The events of a session, each with those who hear of it, and its questions, each with the listener that answers.

    Whoever knows of an event calls its handlers.  Of what nobody answers, nothing is known.
    """

    def __init__(self) -> None:
        self.forward: Handlers = ()
        self.forward_due: Handlers = ()
        self.pass_begin: Handlers = ()
        self.pass_end: Handlers = ()
        self.step_end: Handlers = ()
        self.move: Handlers = ()
        nobody = Listener()
        self.loader_of = nobody.loader_of
        self.place_of_thread = nobody.place_of_thread
        self.places_copying = nobody.places_copying
        self.is_optimized = nobody.is_optimized
        self.explain = nobody.explain

    def subscribe(self, listener: Listener) -> None:
        """Let a listener hear of the events and answer the questions whose methods it overrides."""
        for name, known in vars(self).items():
            method = f"on_{name}" if isinstance(known, tuple) else name
            if getattr(type(listener), method) is not getattr(Listener, method):
                own = getattr(listener, method)
                setattr(self, name, (*known, own) if isinstance(known, tuple) else own)


_Result = TypeVar("_Result")


class Backend(NamedTuple):
    """An accelerator whose kernels are Python functions: its dispatch key, and the kernels by operator name."""

    key: str
    kernels: Mapping[str, Callable[..., Any]]


@dataclass(frozen=True, slots=True)
class Settings:
    """How a process is to be audited.

    ``key`` is the dispatch key of the accelerator (``CUDA``), empty to find out.  ``kernels`` are the original kernels
    by operator name where they are Python functions, which cannot be looked up (the simulated device's).  ``steps``
    stops the run after so many training steps.  ``roots`` are the project's directories.  ``sampling`` allows to record
    not all of a step where that would slow it down.
    """

    key: str = ""
    simulated: bool = False
    kernels: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    steps: int | None = None
    roots: tuple[str, ...] = ()
    sampling: bool = True


class Session:
    """The audit of one process: made before torch is imported, started when it is.

    ``alive`` is what every hook asks first: once it is false, by :meth:`fail`, by :meth:`stop` or in a forked child,
    hooks do nothing but pass on.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.frames = Frames(settings.roots)
        self.ledger = Ledger(self.frames, timed=not settings.simulated)
        self.alive = False
        self.failure = ""
        self.notes: list[str] = []
        self.listeners: list[Listener] = []
        self.patches = Patches()
        self.signals = Signals()
        self.unheard: Callable[[], AbstractContextManager[object]] = nullcontext
        """A context in which neither the classes of tensors nor a ``TorchFunctionMode`` hear what is asked of them."""
        self.began = time.time() - (time.perf_counter() - self.ledger.origin)
        self.pid = os.getpid()
        _SESSIONS.add(self)

    def start(self, listeners: Sequence[Listener]) -> None:
        """Install the listeners, in this order; torch has been imported."""
        native: Any = getattr(sys.modules.get("torch"), "_C", None)
        self.unheard = getattr(native, "DisableTorchFunction", nullcontext)
        self.alive = True
        for listener in listeners:
            try:
                listener.install()
            except Exception as error:
                self.fail(error)
                return
            self.signals.subscribe(listener)
            self.listeners.append(listener)

    def stop(self) -> None:
        """Remove the listeners, and put back what they have replaced."""
        self.alive = False
        self.signals = Signals()
        self.listeners.clear()
        while True:
            try:
                return self.patches.undo()
            except Exception as error:
                self._say(error)

    def guarded(self, function: Callable[..., _Result], *args: Any) -> _Result | None:
        """Do the audit's own work, whose failure is the audit's alone: the result, ``None`` if there is none.

        What it asks of tensors is heard neither by their classes nor by a ``TorchFunctionMode`` of the script.
        """
        if not self.alive:
            return None
        try:
            with self.unheard():
                return function(*args)
        except Exception as error:
            self.fail(error)
            return None

    def fail(self, error: BaseException) -> None:
        """devlint has a bug: switch the audit off, say so in one line, and let the script run on.

        What a signal handler has raised while devlint was at work is the script's, and is raised again.
        """
        if _is_of_signal(error):
            raise error
        if not self.failure:
            self._say(error)
        self.alive = False

    def process(self, ending: Ending) -> Process:
        """What was seen so far."""
        values: dict[str, Any] = {}
        for listener in self.listeners:
            try:
                values |= listener.describe()
            except Exception as error:
                self.fail(error)
        books = self.ledger.as_if_ended()
        return Process(
            pid=self.pid,
            ending=ending,
            events=books.events(),
            began=self.began,
            timeline=books.timeline(),
            notes=tuple(self.notes),
            failure=self.failure,
            **values,
        )

    def _say(self, error: BaseException) -> None:
        self.failure = self.failure or f"{type(error).__name__}: {error}"
        line = " ".join(self.failure.split())
        try:
            sys.stderr.write(f"devlint: the audit failed and was switched off, the script runs on: {line}\n")
        except (OSError, ValueError, AttributeError):  # nobody listens
            pass


def _is_of_signal(error: BaseException) -> bool:
    """Whether it comes from a handler of a signal, as an alarm that is to end what takes too long."""
    handlers = [signal.getsignal(number) for number in signal.valid_signals()]
    handlers += [getattr(handler, "__func__", type(handler).__call__) for handler in handlers if callable(handler)]
    codes = {getattr(handler, "__code__", None) for handler in handlers} - {None}
    return any(frame.f_code in codes for frame, _ in traceback.walk_tb(error.__traceback__))


_SESSIONS: weakref.WeakSet[Session] = weakref.WeakSet()


def _orphan() -> None:
    """A forked child has the hooks of its parent, and nobody who would read what they count."""
    for session in list(_SESSIONS):
        session.alive = False


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_orphan)
