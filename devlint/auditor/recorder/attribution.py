"""Which line of the project to blame for what a kernel is asked to do, in whatever thread that happens."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from itertools import islice
from types import CodeType, FrameType
from typing import Any, Literal, NamedTuple

import torch

from devlint.auditor.compatibility import wrap_backward
from devlint.auditor.frames import NOWHERE
from devlint.auditor.session import Listener, Session

_REMEMBERED = 16_384
"""So many forward operations are remembered for their backward; the oldest quarter goes first."""
_NATIVE = "autograd"
"""The name of threads that Python did not start; they are autograd's as a rule."""


class Origin(NamedTuple):
    """A place, and whether autograd ran what happened there."""

    place: int
    backward: bool = False


def is_detached(origin: Origin) -> bool:
    """Whether what happens there now is not recorded by autograd, and is no work of autograd's own."""
    return not origin.backward and not torch.is_grad_enabled()


class Attribution(Listener):
    """Finds the origin of an event in the calling thread.

    What autograd runs is blamed on the operation which it reverses: the forward operation is remembered by the number
    that autograd gave it (:meth:`remember`), and the node that runs in backward bears the same number.  Those numbers
    count from zero in each thread, so one that two places were given says nothing.  Where the operation is not known,
    the line that started the latest backward is blamed.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._forward: dict[int, int] = {}
        self._running: list[int | FrameType] = []
        """Where the backwards were started that run: a frame is looked at only if it comes to be blamed."""
        self._origins: dict[int, Origin] = {}
        self._local = threading.local()
        self._engine: CodeType | None = None

    def install(self) -> None:
        """Learn when autograd runs."""
        wrap_backward(self._session.patches, self._wrap_backward)

    def _wrap_backward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        session, running = self._session, self._running

        def run_backward(*args: Any, **kwargs: Any) -> Any:
            if not session.alive:
                return original(*args, **kwargs)
            start = self.origin().place if running else sys._getframe(1)
            running.append(start)
            try:
                return original(*args, **kwargs)
            finally:
                running.remove(start)

        self._engine = run_backward.__code__
        return run_backward

    def origin(self) -> Origin:
        """Where the caller was called from."""
        frame = sys._getframe(1)
        if self._running:
            return self._in_backward(frame)
        place = self._session.frames.at(frame) or self._session.signals.place_of_thread()
        origin = self._origins.get(place)
        if origin is None:
            origin = self._origins[place] = Origin(place)
        return origin

    def remember(self, place: int) -> None:
        """The operation that runs, at ``place``, is one that autograd will reverse: its number has just been given."""
        number = torch._C._autograd._get_sequence_nr() - 1
        known = self._forward.get(number)
        if known is None and len(self._forward) >= _REMEMBERED:
            for old in list(islice(self._forward, _REMEMBERED // 4)):
                self._forward.pop(old, None)
        self._forward[number] = place if known is None or known == place else NOWHERE

    def thread(self) -> str:
        """The name of the calling thread."""
        try:
            name: str = self._local.name
        except AttributeError:
            # current_thread() would enter a thread of C++ into the list of threads, where the script could see it
            known = getattr(threading, "_active", {}).get(threading.get_ident())
            name = _NATIVE if known is None else known.name
            self._local.name = name
        return name

    def _in_backward(self, frame: FrameType) -> Origin:
        """The same while autograd runs, in this thread or in another."""
        frames = self._session.frames
        node: Any = torch._C._current_autograd_node()
        within = self._innermost(frame)
        if within == "project":
            # a thread of the project, a hook on a tensor, the backward of a function of the project
            return Origin(frames.at(frame), node is not None)
        if node is not None:
            place = self._forward.get(node._sequence_nr(), NOWHERE)
            if place != NOWHERE:
                return Origin(place, True)
        elif within == "" and self.thread() != _NATIVE:
            return Origin(frames.at(frame) or self._session.signals.place_of_thread())
        start = (self._running or [NOWHERE])[-1]
        return Origin(frames.at(frame) or (start if isinstance(start, int) else frames.at(start)), True)

    def _innermost(self, frame: FrameType) -> Literal["", "project", "engine"]:
        """Whether a frame of the project or the call of autograd comes first, from the inside out."""
        is_project, engine = self._session.frames.is_project, self._engine
        outer: FrameType | None = frame
        while outer is not None:
            if outer.f_code is engine:
                return "engine"
            if is_project(outer.f_code):
                return "project"
            outer = outer.f_back
        return ""
