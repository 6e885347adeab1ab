"""The observer of calls: on which devices the project's own functions find their arguments, and leave their results.

Looking costs microseconds, and a step of training has milliseconds. So the first calls of each function are looked at,
and later one more whenever a run has made twice as many steps, forward passes and moves as at the last time.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping
from types import CodeType, FrameType

from devlint.auditor.calls.monitoring import Monitor, Returned, Started
from devlint.auditor.calls.sights import Sights, attributes, look
from devlint.auditor.frames import file_of
from devlint.auditor.session import Listener, Session
from devlint.observation import RETURNED, Observation

FIRST = 8
"""So many calls of a function are looked at to begin with."""
MOST_FUNCTIONS = 2_000
MOST_NAMES = 64
"""So many names of a function are looked at."""
SHARE = 0.01
"""Looking may take so much of the run's time."""
ALLOWANCE = 0.5
"""So many seconds it may take besides, when the run begins."""

_GENERATORS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_STARRED = inspect.CO_VARARGS, inspect.CO_VARKEYWORDS


class Function:
    """What was seen of one function of the project."""

    __slots__ = ("calls", "code", "names", "returns", "sights")

    def __init__(self, code: CodeType) -> None:
        self.code = code
        self.names = parameters(code)
        self.calls = 0
        self.returns = 0
        self.sights: dict[str, Sights] = {}

    def see(self, name: str, value: object) -> None:
        """What a name holds in one call."""
        sights = self.sights.get(name)
        if sights is None:
            if len(self.sights) >= MOST_NAMES:
                return
            sights = self.sights[name] = Sights()
        sights.add(look(value))

    def described(self) -> Observation | None:
        """What the record says, ``None`` where nothing was anywhere."""
        found = [sight for name, sights in self.sights.items() if (sight := sights.described(name)) is not None]
        if not found:
            return None
        return Observation(
            file=file_of(self.code.co_filename),
            function=self.code.co_name,
            line=self.code.co_firstlineno,
            calls=self.calls,
            sights=tuple(found),
        )


def parameters(code: CodeType) -> tuple[str, ...]:
    """The names of a function's parameters."""
    count = code.co_argcount + code.co_kwonlyargcount + sum(bool(code.co_flags & flag) for flag in _STARRED)
    return code.co_varnames[:count]


class CallObserver(Listener):
    """Looks at calls of the project's own functions."""

    def __init__(self, session: Session, monitor: Callable[[Started, Returned], Monitor] = Monitor) -> None:
        self._session = session
        self._monitor = monitor(self._on_start, self._on_return)
        self._functions: dict[int, Function] = {}
        """By the identity of their code, which they keep alive."""
        self._limit = FIRST
        self._happened = 0
        self._began = time.perf_counter()
        self._spent = 0.0

    def install(self) -> None:
        """Hear of calls from now on."""
        if self._monitor.begin():
            self._session.patches.add(self._monitor.end)

    def describe(self) -> Mapping[str, object]:
        """What was seen of each function."""
        found = [function.described() for function in list(self._functions.values())]
        return {"observations": tuple(observation for observation in found if observation is not None)}

    def on_step_end(self) -> None:
        """What was not yet there may be there now."""
        self._happen()

    def on_forward(self) -> None:
        """The same, where a loop has no steps."""
        self._happen()

    def on_move(self) -> None:
        """The same: what is moved was elsewhere in the calls that were looked at."""
        self._happen()

    def _happen(self) -> None:
        self._happened += 1
        if not self._happened & (self._happened - 1):  # 1, 2, 4, 8, ...
            self._limit += 1
            self._monitor.again()

    def _on_start(self, code: CodeType, frame: FrameType) -> bool:
        function = self._function(code)
        if function is None or function.calls >= self._limit or not self._may_look():
            return False
        function.calls += 1
        began = time.perf_counter()
        self._session.guarded(self._enter, function, frame)
        self._spent += time.perf_counter() - began
        return True

    def _enter(self, function: Function, frame: FrameType) -> None:
        """What a function finds when it begins: its arguments, and what is kept by the first one, as ``self`` is."""
        held = frame.f_locals
        names = function.names
        for name in names:
            if name in held:
                function.see(name, held[name])
        if names[:1] == ("self",) and "self" in held:
            for name, value in attributes(held["self"]):
                function.see(f"self.{name}", value)
        self._monitor.forget(held)

    def _on_return(self, code: CodeType, value: object) -> bool:
        function = self._functions.get(id(code))
        if function is None or function.returns >= self._limit or code.co_flags & _GENERATORS or not self._may_look():
            return False
        function.returns += 1
        began = time.perf_counter()
        self._session.guarded(function.see, RETURNED, value)
        self._spent += time.perf_counter() - began
        return True

    def _function(self, code: CodeType) -> Function | None:
        """What is known of a function, ``None`` if it is not to be looked at."""
        function = self._functions.get(id(code))
        if function is None and self._is_wanted(code):
            function = self._functions[id(code)] = Function(code)
        return function

    def _is_wanted(self, code: CodeType) -> bool:
        """Whether it is a function of the project in a file; lambdas and comprehensions have no name to be told by."""
        named = code.co_flags & inspect.CO_OPTIMIZED and not code.co_name.startswith("<")
        if not named or code.co_filename.startswith("<") or len(self._functions) >= MOST_FUNCTIONS:
            return False
        return self._session.alive and self._session.frames.is_project(code)

    def _may_look(self) -> bool:
        if not self._session.alive:
            return False
        return self._spent < ALLOWANCE + SHARE * (time.perf_counter() - self._began)
