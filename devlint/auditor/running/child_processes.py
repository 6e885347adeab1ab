"""The processes that ``multiprocessing`` starts: each is audited for itself, and leaves a record of its own."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from devlint._about import PACKAGE
from devlint.auditor.patches import Patches
from devlint.auditor.running.console import say
from devlint.auditor.running.import_hook import when_imported
from devlint.auditor.running.process_exit import Departures
from devlint.auditor.running.recording import Plan, Recording
from devlint.auditor.running.runner import clean, describe
from devlint.record import Ending, Process

_LOADER_WORKER = "torch.utils.data._utils.worker"
_CATCHERS = {("multiprocessing.process", "_bootstrap"), ("torch.multiprocessing.spawn", "_wrap")}
"""Who catches the exception that ends a child: module and function."""


class Children:
    """Has every child that ``multiprocessing`` starts audit itself, and that child's children, too."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._patches = Patches()
        self._cancel: list[Callable[[], None]] = []
        self._child: _Child | None = None

    def board(self) -> None:
        """This process has been spawned: what it imports before it does its work is to be heard of, too."""
        self.follow()
        self._child = _begin(self._plan)

    def follow(self) -> None:
        """Hook in, as soon as the script has ``multiprocessing``."""
        self._cancel = [
            when_imported("multiprocessing.spawn", self._send_along),
            when_imported("multiprocessing.process", self._start_with),
        ]

    def forget(self) -> None:
        """Take it back."""
        for cancel in self._cancel:
            cancel()
        self._patches.undo()

    def _send_along(self) -> None:
        """A spawned child knows nothing: what it needs travels with what multiprocessing prepares for it."""
        from multiprocessing import spawn

        original = spawn.get_preparation_data

        def get_preparation_data(name: str) -> dict[str, Any]:
            data: dict[str, Any] = original(name)
            data["devlint"] = Stowaway(_board, self._plan)
            return data

        self._patches.set(spawn, "get_preparation_data", get_preparation_data)

    def _start_with(self) -> None:
        from multiprocessing.process import BaseProcess

        original = BaseProcess._bootstrap  # type: ignore[attr-defined]  # private, the same since Python 3.4

        def _bootstrap(process: BaseProcess, *arguments: Any, **keywords: Any) -> int:
            child = self._child
            if child is None or not child.recording.is_of_this_process:  # but of the one that was forked
                child = _begin(self._plan)
            patches = Patches() if child is None else child.explain_what_is_printed()
            code: int = 1
            try:
                code = original(process, *arguments, **keywords)
            finally:
                patches.undo()
                _end(child, process, code)
            return code

        self._patches.set(BaseProcess, "_bootstrap", _bootstrap)


def _board(plan: Plan) -> None:
    Children(plan).board()


class Stowaway:
    """Unpickled in a spawned child before anything else, it calls a function there, such as one that begins an audit.

    It unpickles as code, since the path of imports is not yet the parent's: where devlint cannot be found, the child
    is not followed, but it runs.
    """

    def __init__(self, function: Callable[..., object], *arguments: object) -> None:
        self._work = functools.partial(function, *arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        import pickle

        return exec, (_BOARDING.format(place=os.path.dirname(PACKAGE), work=pickle.dumps(self._work)), {})


_BOARDING = """\
import sys
sys.path.append({place!r})
try:
    import pickle
    pickle.loads({work!r})()
except Exception as error:
    sys.stderr.write(f"warning: devlint does not follow a child process: {{type(error).__name__}}: {{error}}\\n")
finally:
    sys.path.remove({place!r})
"""


class _Child:
    def __init__(self, plan: Plan) -> None:
        self.recording = Recording(plan, f"child-{os.getpid()}.json", "child")
        self.departures = Departures(self.leave, prompt=True)
        self._died_of: Ending | None = None

    def leave(self, code: int | None) -> None:
        if code is None:
            self.recording.save(self.recording.record(Ending(), complete=False))
            return
        if code < 0:
            ending = Ending(kind="terminated", code=128 - code)
        elif code == 0:
            ending = Ending(kind="finished")
        else:
            ending = replace(self._died_of or Ending(kind="exit"), code=code & 0xFF)
        record = self.recording.record(ending)
        if any(map(_saw_something, record.processes)):
            self.recording.save(record)

    def explain_what_is_printed(self) -> Patches:
        """Have the exception that ends the child explained, which is caught before it gets here.

        Whoever catches it asks :mod:`traceback` for its text, and is known by its name: a function around the child's
        work would be seen in that text.
        """
        patches = Patches()
        patches.set(traceback, "print_exc", self._explaining(traceback.print_exc))
        patches.set(traceback, "format_exc", self._explaining(traceback.format_exc))
        return patches

    def _explaining(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def replacement(*arguments: Any, **keywords: Any) -> Any:
            caller, error = sys._getframe(1), sys.exc_info()[1]
            if error is not None and (caller.f_globals.get("__name__"), caller.f_code.co_name) in _CATCHERS:
                self._died_of = describe(error)
                clean(error)
                with contextlib.suppress(Exception):  # the text is what counts now
                    self.recording.explain(error)
            return function(*arguments, **keywords)

        return replacement


def _begin(plan: Plan) -> _Child | None:
    try:
        child = _Child(plan)
        child.recording.begin()
        child.departures.watch()
    except Exception as error:
        say("warning", f"a child process is not audited: {type(error).__name__}: {error}")
        return None
    return child


def _end(child: _Child | None, process: object, code: int) -> None:
    if child is None:
        return
    target = getattr(process, "_target", None)
    if getattr(target, "__module__", "") == _LOADER_WORKER:
        child.recording.role = "loader worker"
    try:
        child.departures.remove()
        child.leave(code)
        child.recording.end()
    except Exception as error:
        say("warning", f"a child process is not audited: {type(error).__name__}: {error}")


def _saw_something(process: Process) -> bool:
    """Whether a child did anything that is worth telling; that a loader's worker calls modules is nothing special."""
    if process.events or process.mismatches or process.failure:
        return True
    used = process.models.outermost or process.steps.train or process.steps.eval
    return bool(used) and process.role != "loader worker"
