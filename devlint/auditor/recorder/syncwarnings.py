"""Waits that no kernel of the audit sees: torch can warn of them, and here only the audit hears it."""

from __future__ import annotations

import re
import threading
import warnings
from typing import Any, Literal

import torch

from devlint.auditor.history import What
from devlint.auditor.recorder.attribution import Attribution, is_detached
from devlint.auditor.recorder.waits import Waits
from devlint.auditor.session import Listener, Session

WAITED = "called a synchronizing CUDA operation"
_PROTOTYPE = "Synchronization debug mode is a prototype feature"
_OFF, _WARN = 0, 1
NAME = "synchronizing operation"


class SyncWarnings(Listener):
    """Listens to `torch.cuda.set_sync_debug_mode("warn")` without the script noticing.

    The first of Python's warning filters asks :meth:`match` about every warning: this counts those of torch and has
    them ignored, so that none is printed or raised.  What the audit counts itself is done with the mode switched off
    (:meth:`enter`, :meth:`leave`).  A script that sets the mode keeps it, and its warnings, for itself.
    """

    def __init__(self, session: Session, attribution: Attribution, waits: Waits) -> None:
        self._session = session
        self._attribution = attribution
        self._waits = waits
        self._filter = ("ignore", self, UserWarning, None, 0)
        self._set: Any = getattr(torch._C, "_cuda_set_sync_debug_mode", None)
        self._inside: set[int] = set()
        self._wanted = _OFF
        self.armed = False
        self._left_alone = False

    def install(self) -> None:
        """Have the mode set as soon as CUDA is initialised; nothing on a simulated device or without CUDA."""
        if self._set is not None and not self._session.settings.simulated:
            self._patch_torch()
            self._patch_warnings()
            when_initialised: Any = torch.cuda._lazy_call
            when_initialised(self._arm)
            self._session.patches.add(self._disarm)

    def _disarm(self) -> None:
        if self.armed:
            self.armed = False
            self._set(self._wanted)
        self._drop()

    def enter(self) -> bool:
        """What follows in this thread is counted already; whether :meth:`leave` has to be called."""
        if not self.armed:
            return False
        thread = threading.get_ident()
        if thread in self._inside:
            return False
        self._inside.add(thread)
        self._set(_OFF)
        return True

    def leave(self) -> None:
        """The end of what :meth:`enter` began."""
        self._inside.discard(threading.get_ident())
        if self.armed and not self._inside and not self._left_alone:
            self._set(_WARN)

    def leave_alone(self) -> None:
        """Waits are not seen until :meth:`take_back`."""
        self._left_alone = True
        if self.armed:
            self._set(_OFF)

    def take_back(self) -> None:
        """Waits are seen again."""
        self._left_alone = False
        if self.armed and not self._inside:
            self._set(_WARN)

    def match(self, text: str) -> bool:
        """Whether a warning is one that the audit asked for; called by Python's warnings."""
        if not self.armed:
            return False
        if text.startswith(WAITED):
            self.count("sync", NAME)
            return True
        return text.startswith(_PROTOTYPE)

    def count(self, kind: Literal["sync", "call"], name: str, seconds: float = 0.0) -> None:
        """The calling thread has waited for a device, or done something that costs by itself."""
        try:
            origin = self._attribution.origin()
            blocking = True if kind == "sync" else None
            detached = is_detached(origin)
            what = What(kind, name, origin.place, backward=origin.backward, blocking=blocking, detached=detached)
            self._session.ledger.add(what, 0, seconds).threads.add(self._attribution.thread())
            self._waits.waited()
        except Exception as error:
            self._session.fail(error)

    def __reduce__(self) -> tuple[Any, ...]:
        """Filters are sent to worker processes, where a pattern does as well."""
        return re.compile, (WAITED,)

    def _arm(self) -> None:
        if self._session.alive and self._wanted == _OFF:
            self._keep_first()
            self.armed = True
            if not self._left_alone:
                self._set(_WARN)

    def _patch_torch(self) -> None:
        original_set, original_get = torch.cuda.set_sync_debug_mode, torch.cuda.get_sync_debug_mode

        def set_sync_debug_mode(debug_mode: Any) -> None:
            self.armed = False  # from here on the mode is the script's
            original_set(debug_mode)
            self._wanted = original_get()
            self._arm()

        def get_sync_debug_mode() -> int:
            return self._wanted if self.armed else original_get()

        self._session.patches.set(torch.cuda, "set_sync_debug_mode", set_sync_debug_mode)
        self._session.patches.set(torch.cuda, "get_sync_debug_mode", get_sync_debug_mode)

    def _patch_warnings(self) -> None:
        """Whoever adds a filter puts it in front, and one that raises would raise in the script."""
        owners: list[tuple[Any, str]] = [(warnings, "resetwarnings"), (warnings.catch_warnings, "__exit__")]
        owners.append((warnings, "_add_filter") if hasattr(warnings, "_add_filter") else (warnings, "simplefilter"))
        for owner, name in owners:
            self._session.patches.set(owner, name, self._then_first(getattr(owner, name)))

    def _then_first(self, original: Any) -> Any:
        def function(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            if self.armed:
                self._keep_first()
            return result

        return function

    def _keep_first(self) -> None:
        filters: Any = warnings.filters
        if not filters or filters[0] is not self._filter:
            self._drop()
            filters.insert(0, self._filter)

    def _drop(self) -> None:
        filters: Any = warnings.filters
        kept = [entry for entry in filters if entry is not self._filter]
        if len(kept) != len(filters):
            filters[:] = kept
