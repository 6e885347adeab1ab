"""Python's own events of calls, which cost nothing where nobody wants to hear of them: ``sys.monitoring``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import CodeType, FrameType
from typing import Any

_TOOLS = (4, 3)
"""Numbers that Python gives to no kind of tool; debuggers, coverage and profilers have their own."""

Started = Callable[[CodeType, FrameType], bool]
"""A function begins in a frame; false if no more is to be heard of its calls."""
Returned = Callable[[CodeType, object], bool]
"""A function returns a value; false if no more is to be heard of that ``return``."""


class Monitor:
    """Tells of the calls of Python functions, in all threads; before Python 3.12 of none.

    One tool finds each function when it is first called, and hears no more of it. The other hears of the calls of those
    that are wanted. So nothing is to be done about all the others to hear of these once more.
    """

    def __init__(self, started: Started, returned: Returned) -> None:
        self._started = started
        self._returned = returned
        self._monitoring: Any = getattr(sys, "monitoring", None)
        self._tools: tuple[int, ...] = ()
        self._followed: list[CodeType] = []
        self._events = 0

    def begin(self) -> bool:
        """Whether calls are told of from now on."""
        monitoring = self._monitoring
        if monitoring is None or any(monitoring.get_tool(tool) is not None for tool in _TOOLS):
            return False
        finder, listener = self._tools = _TOOLS
        for tool in _TOOLS:
            monitoring.use_tool_id(tool, "devlint")
        start, end = monitoring.events.PY_START, monitoring.events.PY_RETURN
        self._events = start | end
        disable, started, returned = monitoring.DISABLE, self._started, self._returned

        def on_first(code: CodeType, _: int) -> object:
            if started(code, sys._getframe(1)):
                self._followed.append(code)
                monitoring.set_local_events(listener, code, self._events)
            return disable

        def on_start(code: CodeType, _: int) -> object:
            return None if started(code, sys._getframe(1)) else disable

        def on_return(code: CodeType, _: int, value: object) -> object:
            return None if returned(code, value) else disable

        monitoring.register_callback(finder, start, on_first)
        monitoring.register_callback(listener, start, on_start)
        monitoring.register_callback(listener, end, on_return)
        monitoring.set_events(finder, start)
        return True

    def forget(self, held: Mapping[str, object]) -> None:
        """Let go of what a frame held: before Python 3.13 it keeps a copy, and with it what the function gives up."""
        if isinstance(held, dict):
            held.clear()

    def again(self) -> None:
        """Tell once more of the functions that are wanted."""
        for code in self._followed if self._tools else ():
            # what is set anew forgets what was not to be heard any more
            self._monitoring.set_local_events(self._tools[1], code, 0)
            self._monitoring.set_local_events(self._tools[1], code, self._events)

    def end(self) -> None:
        """Tell of nothing any more."""
        monitoring, tools, self._tools = self._monitoring, self._tools, ()
        if not tools:
            return
        finder, listener = tools
        monitoring.set_events(finder, 0)
        for code in self._followed:
            monitoring.set_local_events(listener, code, 0)
        self._followed.clear()
        for tool in tools:
            for event in (monitoring.events.PY_START, monitoring.events.PY_RETURN):
                monitoring.register_callback(tool, event, None)
            monitoring.free_tool_id(tool)
