"""Runs a script as ``python script.py`` would: its ``__main__``, its tracebacks, its end, all but its exit itself."""

from __future__ import annotations

import atexit
import importlib.util
import io
import os
import pkgutil
import re
import runpy
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.machinery import BuiltinImporter, SourceFileLoader, SourcelessFileLoader
from types import CodeType, ModuleType, TracebackType
from typing import Any

from devlint._about import PACKAGE
from devlint.auditor.running.console import say
from devlint.record import Ending

_OWN = os.path.join(PACKAGE, "")
_COLOR = re.compile(r"\x1b\[[0-9;]*m")


class ScriptError(Exception):
    """The script cannot be run at all; the text is the one line that the user sees."""


@dataclass(frozen=True, slots=True)
class Script:
    """What is to run: a file, or with ``module`` the name of a module, and the arguments that follow it."""

    target: str
    arguments: tuple[str, ...] = ()
    module: bool = False

    def check(self) -> None:
        """Raise a :class:`ScriptError` if there is no such thing."""
        if self.module:
            top = self.target.partition(".")[0]
            if not top or importlib.util.find_spec(top) is None:
                raise ScriptError(f"there is no module named {self.target!r}")
            return
        if self.target.endswith(".ipynb"):
            hint = "in its cells, `with devlint.audit() as run:` does the same"
            raise ScriptError(f"{self.target}: is a notebook; {hint}")
        try:
            if os.path.isdir(self.target):
                if not os.path.exists(os.path.join(self.target, "__main__.py")):
                    raise ScriptError(f"{self.target}: is a directory without a __main__.py")
            else:
                open(self.target, "rb").close()
        except (OSError, ValueError) as error:  # ValueError: a null character
            raise ScriptError(f"{self.target}: {getattr(error, 'strerror', None) or error}") from error

    @property
    def directory(self) -> str:
        """What Python puts first on the path of imports."""
        if self.module:
            return os.getcwd()
        if _has_main(self.target):
            return os.path.abspath(self.target)
        return os.path.dirname(os.path.realpath(self.target))


def run(script: Script, on_end: Callable[[Ending, BaseException | None], object]) -> tuple[Ending, object]:
    """Run the script to the end of its threads and its ``atexit`` functions.

    Returns how it ended, and what to give to ``sys.exit``.  ``on_end`` hears of it before the threads and functions
    do, and sees the exception while the script's variables still live.  The path of imports has been set; see
    :func:`prepare_path`.
    """
    sys.argv = ["-m" if script.module else script.target, *script.arguments]
    sys.modules["__main__"] = _fresh_main()
    # what devlint has on the stack is not to be at the expense of the script
    sys.setrecursionlimit(sys.getrecursionlimit() + _depth())
    error = _attempt(script)
    if error is not None:
        clean(error)
    ending = describe(error)
    try:
        on_end(ending, error)
    except Exception as failure:
        say("error", f"devlint failed at the end of the script: {type(failure).__name__}: {failure}")
    code = None
    if error is not None:
        code = _exit_code(error) if isinstance(error, SystemExit) else _print(error)
        if ending.kind != "interrupted":
            ending = replace(ending, code=(code or 0) & 0xFF)  # what a parent process sees
    del error  # with the script's variables
    _finish()
    return ending, code


def prepare_path(script: Script) -> None:
    """Put the script's directory where Python would have put it, in the place of devlint's own."""
    own = os.path.dirname(os.path.realpath(sys.argv[0])) if sys.argv else None
    if sys.path and sys.path[0] == own:
        del sys.path[0]
    if not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)) or _has_main(script.target):
        sys.path.insert(0, script.directory)


def die_of(number: int) -> None:
    """End this process by a signal, as if nobody had caught it."""
    flush_all()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def flush(stream: Any) -> None:
    """Write out what a stream holds back; that it cannot be written is for Python to say at the end."""
    try:
        stream.flush()
    except (OSError, ValueError, AttributeError, RuntimeError):  # closed, None, or a signal came while it is written
        pass


def flush_all() -> None:
    """The same for the standard output and the standard error."""
    flush(sys.stdout)
    flush(sys.stderr)


def _attempt(script: Script) -> BaseException | None:
    """Run the script; the exception that ended it is for the caller, when it is no longer being handled."""
    try:
        _execute(script)
    except BaseException as error:
        return error
    return None


def _execute(script: Script) -> None:
    if script.module:
        # Python's own way of running a module, so that even the tracebacks are the same
        runpy._run_module_as_main(script.target)  # type: ignore[attr-defined]  # private, but the interpreter's own entry
    elif _has_main(script.target):
        runpy._run_module_as_main("__main__", alter_argv=False)  # type: ignore[attr-defined]  # as above
    else:
        path = script.target if os.path.isabs(script.target) else os.path.join(os.getcwd(), script.target)
        main = sys.modules["__main__"]
        main.__file__ = path
        vars(main)["__cached__"] = None
        compiled = path.endswith(".pyc")
        main.__loader__ = (SourcelessFileLoader if compiled else SourceFileLoader)("__main__", path)
        exec(_code(path, compiled), vars(main))


def _code(path: str, compiled: bool) -> CodeType:
    if compiled:
        code = SourcelessFileLoader("__main__", path).get_code("__main__")
        assert code is not None  # it raises if there is none
        return code
    with io.open_code(path) as stream:
        text = stream.read()
    return compile(text, path, "exec", dont_inherit=True)


def _fresh_main() -> ModuleType:
    """``__main__`` as the interpreter makes it before anything runs in it."""
    import builtins

    main = ModuleType("__main__")
    main.__loader__ = BuiltinImporter
    vars(main)["__builtins__"] = builtins
    if sys.version_info < (3, 14):
        main.__annotations__ = {}
    return main


def _has_main(target: str) -> bool:
    """Whether the target is a directory or an archive with a ``__main__.py`` in it."""
    return os.path.exists(target) and pkgutil.get_importer(os.path.abspath(target)) is not None


def _depth() -> int:
    depth, frame = 0, sys._getframe(1).f_back
    while frame is not None:
        depth, frame = depth + 1, frame.f_back
    # two are still to come, and the C code in between counts, since 3.12 for less
    return depth + (3 if sys.version_info >= (3, 12) else 5)


def clean(error: BaseException) -> None:
    """Take devlint's frames off the traceback, and off those of the exceptions that led there."""
    seen: set[int] = set()
    left: list[BaseException | None] = [error]
    while left:
        found = left.pop()
        if found is None or id(found) in seen:
            continue
        seen.add(id(found))
        found.__traceback__ = _without_own(found.__traceback__)
        left += [found.__cause__, found.__context__, *getattr(found, "exceptions", ())]


def _without_own(trace: TracebackType | None) -> TracebackType | None:
    entries = []
    while trace is not None:
        entries.append(trace)
        trace = trace.tb_next
    kept = [entry for entry in entries if not entry.tb_frame.f_code.co_filename.startswith(_OWN)]
    if len(kept) == len(entries):
        return entries[0] if entries else None
    for entry in reversed(kept):
        trace = TracebackType(trace, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return trace


def describe(error: BaseException | None) -> Ending:
    """How something ended, by the exception that ended it."""
    if error is None:
        return Ending(kind="finished")
    if isinstance(error, SystemExit):
        return Ending(kind="exit", error="" if error.code is None or isinstance(error.code, int) else str(error.code))
    line = _summary(error)
    if isinstance(error, KeyboardInterrupt):
        return Ending(kind="interrupted", code=128 + signal.SIGINT, error=line)
    return Ending(kind="exception", code=1, error=line)


def _summary(error: BaseException) -> str:
    """An exception in a line: all of a message of many lines is in the traceback, which has been printed."""
    parts = traceback.format_exception_only(type(error), error)
    message = next(part for part in parts if not part.startswith(" "))  # a SyntaxError shows the code first
    lines = [" ".join(line.split()) for line in _COLOR.sub("", message).splitlines() if line.strip()]
    first, last = lines[0], lines[-1]
    # what another process died of, or a list of what is wrong
    leads = first.endswith(":") or any("Traceback (most recent call last)" in line for line in lines)
    return f"{first} {last}" if leads and len(lines) > 1 else first


def _exit_code(error: SystemExit) -> int | None:
    """Do what Python does with a SystemExit, but for leaving: say what there is to say."""
    flush(sys.stdout)
    code = error.code
    if code is None or isinstance(code, int):
        return code
    try:
        sys.stderr.write(f"{code}\n")
    except (OSError, ValueError, AttributeError):  # as in Python, nobody hears of that
        pass
    return 1


def _print(error: BaseException) -> int | None:
    """Print an exception as Python does: by the script's own hook, if it has set one."""
    trace = error.__traceback__
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    flush(sys.stdout)
    try:
        hook = sys.excepthook
        hook(type(error), error, trace)
    except SystemExit as left:
        return _exit_code(left)
    except BaseException as failure:
        clean(failure)
        told = (("Error in sys.excepthook:\n", failure), ("\nOriginal exception was:\n", error))
        for title, each in told if sys.stderr is not None else ():
            sys.stderr.write(title)
            traceback.print_exception(type(each), each, each.__traceback__, file=sys.stderr)
    return 1


def _finish() -> None:
    """What the interpreter does before it takes itself apart: threads are waited for, exit functions run."""
    try:
        threading._shutdown()  # type: ignore[attr-defined]  # private, but what multiprocessing calls for its children
    except BaseException as error:
        clean(error)
        make: Any = sys.UnraisableHookArgs  # a protocol for mypy; in truth it takes one sequence
        sys.unraisablehook(make((type(error), error, error.__traceback__, None, threading)))
    atexit._run_exitfuncs()
    flush_all()
