"""Asynchronous copies to the host that nobody has waited for yet, and who reads them all the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from devlint.auditor.history import What
from devlint.auditor.recorder.repeats import WeakStorage
from devlint.auditor.session import Listener, Session

_READERS = "item tolist __bool__ __int__ __float__ __complex__ __index__".split()
_MOST = 1_024


class _Pending(NamedTuple):
    storage: Any
    what: What


class Waits(Listener):
    """Knows which host tensors a device may still be writing to.

    Anything that waits for a device settles all of them (:meth:`waited`), since which stream they were on is not known.
    A copy is called unwaited only if its result was surely read before: by ``item``, ``tolist`` or as a number, or
    through a NumPy array (``numpy()``) that was gone before anything waited.  What other operators read on the host
    is not seen.  Readers are watched from the first such copy on.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._pending: dict[int, _Pending] = {}
        self._viewed: dict[int, _Pending] = {}
        self._watching = False

    def add(self, target: torch.Tensor, what: What) -> None:
        """A device has begun to write to ``target``, counted as ``what``."""
        if not self._watching:
            self._watching = True
            for name in _READERS:
                self._wrap(name, self._read)
            self._wrap("numpy", self._view)
        if len(self._pending) < _MOST:
            storage = target.untyped_storage()
            self._pending[storage._cdata] = _Pending(WeakStorage(storage), what)

    def waited(self) -> None:
        """Something has waited for a device."""
        if not self._pending and not self._viewed:
            return
        viewed, self._viewed = self._viewed, {}
        self._pending.clear()
        for pending in viewed.values():
            # an array that is gone was used, and whoever used it had not waited
            if pending.storage.expired():
                self._session.ledger.tally(pending.what).unwaited += 1

    def _wrap(self, name: str, note: Callable[[torch.Tensor], None]) -> None:
        original = getattr(torch.Tensor, name)
        session, pending = self._session, self._pending

        def reader(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            if pending:
                session.guarded(note, self)
            return original(self, *args, **kwargs)

        self._session.patches.set(torch.Tensor, name, reader)

    def _read(self, tensor: torch.Tensor) -> None:
        if tensor.device.type == "cpu" and (pending := self._pending.pop(tensor.untyped_storage()._cdata, None)):
            self._session.ledger.tally(pending.what).unwaited += 1

    def _view(self, tensor: torch.Tensor) -> None:
        number = tensor.untyped_storage()._cdata if tensor.device.type == "cpu" else None
        if number in self._pending:
            self._viewed[number] = self._pending[number]
