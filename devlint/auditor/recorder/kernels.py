"""Kernels at the accelerator's dispatch key which count what they do and leave the doing to the original.

The rules by which nothing is counted twice:

* A copy that needs a temporary tensor calls itself for its parts.  Only the innermost call between two devices is a
  transfer; it has the bytes and the dtype that cross.
* An operator which waits for its result (``masked_select``) is one sync, whatever it reads by ``item`` or by another
  such operator inside.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any, Literal

import torch

from devlint.auditor.frames import NOWHERE
from devlint.auditor.history import Tally, What
from devlint.auditor.introspection.tensors import describe
from devlint.auditor.recorder.attribution import Attribution, Origin, is_detached
from devlint.auditor.recorder.backends import Kernel, NoBackendError, Originals, Overrides, find_key
from devlint.auditor.recorder.repeats import Repeats
from devlint.auditor.recorder.syncwarnings import SyncWarnings
from devlint.auditor.recorder.waits import Waits
from devlint.auditor.session import Listener, Session

HOST = "cpu"


def is_pinned(tensor: torch.Tensor) -> bool | None:
    """Whether a tensor of the host is in pinned memory, ``None`` where torch cannot tell."""
    try:
        return tensor.is_pinned()
    except (RuntimeError, NotImplementedError):
        return None


def _is_blocking(to_host: bool, non_blocking: bool, pinned: bool | None) -> bool | None:
    """Whether the host waits for a copy between itself and a device; ``None`` where that is the driver's business.

    One that is not asynchronous it waits for, pinned or not.  An asynchronous one from or to pinned memory it does not
    wait for, and must not read before it has; one of pageable memory to the device it waits for in part, to the host
    until it is done.
    """
    if not non_blocking:
        return True
    if pinned:
        return False
    return True if to_host and pinned is False else None


SYNCS = {
    "nonzero": "nonzero",
    "_unique2": "unique",
    "unique_dim": "unique",
    "unique_consecutive": "unique_consecutive",
    "masked_select": "masked_select",
    "equal": "equal",
    "repeat_interleave.Tensor": "repeat_interleave",
    "bincount": "bincount",
}
"""Operators whose CUDA kernel waits for the device, and what code calls them."""
SPARSE_SYNCS = {"_coalesce": "coalesce"}
"""Those whose kernel is one for sparse tensors, at a key of their own.

Theirs waits inside of Thrust, of which `torch.cuda.set_sync_debug_mode` knows nothing.
"""
COPY = "copy_"
"""The operator that all copies end in."""
READ = "_local_scalar_dense"
"""The operator by which one value is read, whatever asks for it."""
Count = Callable[[Origin, tuple[Any, ...], float], None]
"""Takes down one event: its origin, the operator's arguments, and how long it took."""
_NUMBERS = {bool: torch.bool, int: torch.int64, float: torch.float64, complex: torch.complex128}


class _Local(threading.local):
    """What runs in this thread: the source of the outermost copy, copies counted, whether inside a sync."""

    outer: torch.Tensor | None = None
    counted: int = 0
    syncing: bool = False


class Kernels(Listener):
    """Overrides a few operators at the one key of the accelerator, and ``_pin_memory`` at that of the host."""

    def __init__(self, session: Session, attribution: Attribution, waits: Waits, warnings: SyncWarnings) -> None:
        self._session = session
        self._attribution = attribution
        self._waits = waits
        self._warnings = warnings
        self._repeats = Repeats()
        self._local = _Local()
        self.copies = Overrides({}, "")
        """The first of them, which is taken out while copies are left alone; no other thread may be copying then."""
        self.calls = 0
        """How many copies on one device have asked."""
        self.threads: set[int] = set()
        """In which threads."""
        self.key = session.settings.key

    def install(self) -> None:
        """Override the kernels; raises ``NoBackendError`` where that cannot be done."""
        settings = self._session.settings
        self.key = settings.key or find_key()
        if not self.key:
            raise NoBackendError(
                "this torch was built without an accelerator; --simulate runs the script on a simulated one"
            )
        originals = Originals(self.key, settings.kernels)
        copy = originals.find(COPY)
        if copy is None:
            raise NoBackendError(f"torch {torch.__version__} has no copy at the dispatch key {self.key} to listen to")
        self.copies = self._override({COPY: self._copy(copy)}, self.key)
        found: dict[str, Kernel] = {}
        item = originals.find(READ)
        if item is not None:
            found[READ] = self._counted(item, self._reader("copy", "item", HOST))
        for operator, name in SYNCS.items():
            original = originals.find(operator)
            if original is not None:
                found[operator] = self._counted(original, self._reader("sync", name, ""))
        self._override(found, self.key)
        sparse: dict[str, Kernel] = {}
        for operator, name in SPARSE_SYNCS.items():
            original = originals.find(operator, f"Sparse{self.key}")
            if original is not None:
                sparse[operator] = self._counted(original, self._reader("sync", name, ""))
        self._override(sparse, f"Sparse{self.key}")
        pin = settings.kernels.get("_pin_memory")
        original = originals.find("_pin_memory") if pin is not None else originals.find_at("_pin_memory", "CPU")
        if original is not None:
            self._override({"_pin_memory": self._pin(original)}, "CPU")
        if not originals.looks_up:
            self._session.notes.append(
                f"torch {torch.__version__} is older than 2.9: only copies were seen, and the waits that torch warns of"
            )

    def places_copying(self, storage: int) -> set[int]:
        """Those which copied it to a device."""
        return self._repeats.places(storage)

    def describe(self) -> dict[str, object]:
        """``backend``, the key."""
        return {"backend": self.key}

    def _override(self, kernels: dict[str, Kernel], key: str) -> Overrides:
        overrides = Overrides(kernels, key)
        self._session.patches.add(partial(overrides.take_out, self._session.settings.kernels))
        overrides.put_in()
        return overrides

    def _copy(self, original: Kernel) -> Kernel:
        session, transfer, threads, thread = self._session, self._transfer, self.threads, threading.get_ident

        def copy_(keyset: object, target: torch.Tensor, source: Any, non_blocking: bool = False) -> object:
            try:
                same = target.device == source.device
            except AttributeError:
                # the dispatcher hands the number in `x += 1` over as such, and takes only a tensor back
                source = torch.scalar_tensor(source, dtype=_NUMBERS[type(source)], device="cpu")
                same = target.device == source.device
            if same or not session.alive:
                self.calls += 1
                threads.add(thread())
                return original(keyset, target, source, non_blocking)
            return transfer(original, keyset, target, source, non_blocking)

        return copy_

    def _transfer(
        self, original: Kernel, keyset: object, target: torch.Tensor, source: torch.Tensor, non_blocking: bool
    ) -> object:
        """A copy between two devices, or a part of one."""
        local = self._local
        outer, counted = local.outer, local.counted
        if outer is None:
            local.outer = source
        entered = self._warnings.enter()
        start = perf_counter()
        try:
            result = original(keyset, target, source, non_blocking)
        finally:
            seconds = perf_counter() - start
            local.outer = outer
            if entered:
                self._warnings.leave()
        if local.counted == counted:
            local.counted += 1
            try:
                self._count_copy(target, source, non_blocking, outer, seconds)
            except Exception as error:
                self._session.fail(error)
        return result

    def _count_copy(
        self, target: torch.Tensor, source: torch.Tensor, non_blocking: bool, outer: torch.Tensor | None, seconds: float
    ) -> None:
        if target.numel() == 0:  # there is nothing to copy, and torch does not
            return
        session, whole = self._session, source if outer is None else outer
        start, end = str(source.device), str(target.device)
        host, between = source if start == HOST else target, HOST in (start, end)
        pinned = is_pinned(host) if between else None
        blocking = between and _is_blocking(end == HOST, non_blocking, pinned)
        origin = self._attribution.origin()
        what = What(
            "copy",
            COPY,
            origin.place,
            start,
            end,
            backward=origin.backward,
            pinned=pinned,
            blocking=blocking,
            non_blocking=bool(non_blocking),
            temporary=outer is not None,
            loader=session.signals.loader_of(whole) if start == HOST else None,
            detached=is_detached(origin),
        )
        tally = self._add(what, whole, host.numel() * host.element_size(), seconds)
        if start == HOST:
            earlier = self._repeats.copied(whole, end, origin.place)
            tally.repeats += earlier.again
            if earlier.elsewhere != NOWHERE:
                tally.doubled += 1
                tally.double = earlier.elsewhere
        if not origin.backward and whole.requires_grad and torch.is_grad_enabled():
            self._attribution.remember(origin.place)
        if blocking:
            self._waits.waited()
        elif end == HOST and outer is None:
            self._waits.add(target, what)

    def _reader(self, kind: Literal["copy", "sync"], name: str, target: str) -> Count:
        """Counts an operator that waits for its result; a read besides copies one element."""
        # what is counted is the same again and again, and making it takes longer than finding it
        known: dict[tuple[Origin, torch.device, bool], What] = {}
        add, waits = self._add, self._waits

        def count(origin: Origin, args: tuple[Any, ...], seconds: float) -> None:
            tensor = args[0]
            key = origin, tensor.device, is_detached(origin)
            what = known.get(key)
            if what is None:
                source = str(tensor.device)
                what = What(
                    kind, name, origin.place, source, target, backward=origin.backward, blocking=True, detached=key[2]
                )
                known[key] = what
            add(what, tensor, tensor.element_size() if target else 0, seconds)
            waits.waited()

        return count

    def _pin(self, original: Kernel) -> Kernel:
        def count(origin: Origin, args: tuple[Any, ...], seconds: float) -> None:
            tensor = args[0]
            loader, detached = self._session.signals.loader_of(tensor), is_detached(origin)
            what = What("pin", "pin_memory", origin.place, HOST, HOST, loader=loader, detached=detached)
            self._add(what, tensor, tensor.numel() * tensor.element_size(), seconds)

        return self._counted(original, count)

    def _counted(self, original: Kernel, count: Count) -> Kernel:
        """The original, and then ``count``, unless it is called inside of another that is counted."""
        session, local, origin, warnings = self._session, self._local, self._attribution.origin, self._warnings

        def kernel(keyset: object, *args: Any, **kwargs: Any) -> object:
            if not session.alive or local.syncing:
                return original(keyset, *args, **kwargs)
            local.syncing = True
            entered = warnings.enter()
            start = perf_counter()
            try:
                result = original(keyset, *args, **kwargs)
            finally:
                seconds = perf_counter() - start
                local.syncing = False
                if entered:
                    warnings.leave()
            try:
                count(origin(), args, seconds)
            except Exception as error:
                session.fail(error)
            return result

        return kernel

    def _add(self, what: What, tensor: torch.Tensor, bytes_: int, seconds: float) -> Tally:
        tally = self._session.ledger.add(what, bytes_, seconds)
        tally.threads.add(self._attribution.thread())
        if not tally.example:
            tally.example = describe(tensor)
        return tally
