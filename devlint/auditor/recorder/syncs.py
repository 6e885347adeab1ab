"""Calls by which a script waits for a device on purpose, or gives its memory back."""

from __future__ import annotations

import threading
from time import perf_counter
from typing import Any, Literal

import torch

from devlint.auditor.compatibility import is_compiling
from devlint.auditor.recorder.syncwarnings import SyncWarnings
from devlint.auditor.recorder.waits import Waits
from devlint.auditor.session import Listener, Session

_MODULES = "accelerator cuda mps xpu".split()
_CLASSES = "Stream Event".split()
_CALLS = "empty_cache ipc_collect".split()


class Syncs(Listener):
    """Wraps ``synchronize`` of modules, streams and events, and ``empty_cache`` and its like.

    ``torch.Stream`` and ``torch.Event`` cannot be wrapped; those of ``torch.cuda`` and ``torch.xpu`` can.
    """

    def __init__(self, session: Session, waits: Waits, warnings: SyncWarnings) -> None:
        self._session = session
        self._waits = waits
        self._warnings = warnings
        self._local = threading.local()

    def install(self) -> None:
        """Wrap what this torch has of them; no device is initialised by that."""
        for module, path in ((getattr(torch, name, None), f"torch.{name}") for name in _MODULES):
            for name in ("synchronize", *_CALLS):
                if hasattr(module, name):
                    self._wrap(module, name, f"{path}.{name}", "call" if name in _CALLS else "sync")
            for name in _CLASSES:
                owner = getattr(module, name, None)
                if isinstance(owner, type) and owner.__module__ != "torch":
                    self._wrap(owner, "synchronize", f"{path}.{name}.synchronize", "sync")
                    if hasattr(owner, "query"):
                        self._ask(owner)

    def _wrap(self, owner: Any, name: str, full: str, kind: Literal["sync", "call"]) -> None:
        original = getattr(owner, name)
        session, local = self._session, self._local

        def function(*args: Any, **kwargs: Any) -> Any:
            if is_compiling() or not session.alive or getattr(local, "inside", False):
                return original(*args, **kwargs)
            local.inside = True
            entered = self._warnings.enter()
            start = perf_counter()
            try:
                return original(*args, **kwargs)
            finally:
                seconds = perf_counter() - start
                local.inside = False
                if entered:
                    self._warnings.leave()
                self._warnings.count(kind, full, seconds)

        self._session.patches.set(owner, name, function)
        # the module in which it was defined has it too: torch.cuda.memory.empty_cache
        home: Any = getattr(owner, "memory", None)
        if home is not None and vars(home).get(name) is original:
            self._session.patches.set(home, name, function)

    def _ask(self, owner: Any) -> None:
        """A stream or an event that says it has finished has been waited for."""
        original = owner.query
        session, waits = self._session, self._waits

        def query(*args: Any, **kwargs: Any) -> Any:
            finished = original(*args, **kwargs)
            if finished and session.alive:
                waits.waited()
            return finished

        self._session.patches.set(owner, "query", query)
