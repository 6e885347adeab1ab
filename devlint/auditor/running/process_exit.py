"""The ways to leave a process without coming back to devlint: signals, ``os._exit``, and ``fork`` into another one."""

from __future__ import annotations

import _thread
import os
import signal
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from devlint.auditor.patches import Patches
from devlint.auditor.running.runner import die_of

_PATIENCE = 0.05
"""Seconds in which the main thread should notice a signal."""
_SIGNALS = [number for name in ("SIGTERM", "SIGHUP") if (number := getattr(signal, name, None)) is not None]


class Departures:
    """Calls ``leaving`` before this process dies of a signal, of ``os._exit`` or ``os.exec*``.

    It is given the signal's number, negative, or the exit code, or ``None`` where another program takes over.  A signal
    that the script handles or ignores is the script's.  Nobody can tell that devlint handles the others: who asks gets
    ``SIG_DFL``, since frameworks take a signal over only if nobody else has.

    ``prompt`` has a thread of its own see to it that a signal ends the process at once even while the main thread
    waits in C code, which Python's handlers would wait for: a pool terminates its workers where they wait for a lock
    that is never released.
    """

    def __init__(self, leaving: Callable[[int | None], object], prompt: bool = False) -> None:
        self._leaving = leaving
        self._prompt = prompt
        self._wakeup: tuple[int, int] | None = None
        self._pid = os.getpid()
        self._patches = Patches()
        self._active = False
        self._masks: list[set[Any]] = []

    def watch(self) -> None:
        """Hook in; only the main thread can."""
        self._active = True
        for number in _SIGNALS:
            if signal.getsignal(number) == signal.SIG_DFL:
                signal.signal(number, self._on_signal)
        self._hide()
        self._watch_exit()
        _at_fork(self)
        if self._prompt:
            self._listen()

    def remove(self) -> None:
        """Put everything back."""
        self._active = False
        self._stop_listening()
        self._patches.undo()
        self._reset()

    def _watch_exit(self) -> None:
        original = os._exit

        def _exit(status: int) -> Any:
            self._leave(status)
            return original(status)

        self._patches.set(os, "_exit", _exit)
        for name in ("execv", "execve"):  # all others are made of these
            self._patches.set(os, name, self._announced(getattr(os, name)))

    def _announced(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def exec_(*arguments: Any) -> Any:
            self._leave(None)
            return function(*arguments)

        return exec_

    def _leave(self, code: int | None) -> None:
        """Say that the process ends, once; another program may fail to take over, and the script go on."""
        if self._active and os.getpid() == self._pid:
            self._active = code is None
            self._leaving(code)

    def _hide(self) -> None:
        """Let ``signal.signal`` and ``signal.getsignal`` say that nobody handles what only devlint does."""
        set_handler, get_handler = signal.signal, signal.getsignal

        def own(handler: Any) -> Any:
            return signal.SIG_DFL if handler == self._on_signal else handler

        def signal_(signalnum: int, handler: Any) -> Any:
            return own(set_handler(signalnum, handler))

        def getsignal(signalnum: int) -> Any:
            return own(get_handler(signalnum))

        self._patches.set(signal, "signal", signal_)
        self._patches.set(signal, "getsignal", getsignal)
        self._set_handler, self._get_handler = set_handler, get_handler

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        try:
            self._leave(-number)
        finally:
            die_of(number)

    def _listen(self) -> None:
        if not hasattr(signal, "pthread_sigmask"):  # on Windows, a signal that is not handled is not sent
            return
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        self._wakeup = reader, writer
        if before == -1:
            _thread.start_new_thread(self._wait_for_signals, (reader,))
        else:  # that of the script, or of its event loop
            signal.set_wakeup_fd(before)
            self._stop_listening(threaded=False)

    def _stop_listening(self, threaded: bool = True) -> None:
        """Let go of the pipe, whose end lets the thread end; a fork has not brought the thread along."""
        if self._wakeup is None:
            return
        (reader, writer), self._wakeup = self._wakeup, None
        used = signal.set_wakeup_fd(-1)
        if used not in (writer, -1):
            signal.set_wakeup_fd(used)
        os.close(writer)
        if not threaded:
            os.close(reader)

    def _wait_for_signals(self, reader: int) -> None:
        """What the thread does: Python's C handler writes each signal's number into the pipe at once."""
        while number := os.read(reader, 1):
            time.sleep(_PATIENCE)
            if number[0] in _SIGNALS and self._active and self._get_handler(number[0]) == self._on_signal:
                try:
                    self._leave(-number[0])
                finally:
                    _default(number[0])
                    os.kill(self._pid, number[0])
        os.close(reader)

    def _reset(self) -> None:
        for number in _SIGNALS:
            if self._get_handler(number) == self._on_signal:
                self._set_handler(number, signal.SIG_DFL)

    def before_fork(self) -> None:
        """Hold signals back: Python forgets those that reach the child before it is ready for them."""
        if self._active and hasattr(signal, "pthread_sigmask"):
            self._masks.append(signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS))

    def after_fork(self) -> None:
        """Let them through again, in parent and child."""
        if self._masks:
            signal.pthread_sigmask(signal.SIG_SETMASK, self._masks.pop())

    def in_child(self) -> None:
        """This process has just been forked, and is not the one that is watched."""
        if self._active:
            self._active = False
            self._stop_listening(threaded=False)
            self._reset()
        self.after_fork()


def _default(number: int) -> None:
    """``SIG_DFL`` from any thread: Python's own function is the main thread's alone."""
    import ctypes

    ctypes.CDLL(None).signal(number, None)


_watching: list[Departures] = []
"""The latest one; Python never forgets what it was told to do at a fork."""


def _at_fork(departures: Departures) -> None:
    if not _watching and hasattr(os, "register_at_fork"):  # not on Windows
        os.register_at_fork(
            before=lambda: _watching[0].before_fork(),
            after_in_parent=lambda: _watching[0].after_fork(),
            after_in_child=lambda: _watching[0].in_child(),
        )
    _watching[:] = [departures]
