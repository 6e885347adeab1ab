"""What is known of the DataLoaders of a run, and whose batch a tensor is.  Imports torch."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _BaseDataLoaderIter

from devlint import record
from devlint.auditor.frames import NOWHERE
from devlint.auditor.introspection.tensors import describe, storage_of
from devlint.auditor.session import Listener, Session

_LOOK_AT = 2
"""So many first batches of a loader are looked at closely."""
_REMEMBERED = 4
"""So many latest batches of a loader are told by their storage: some wrappers read ahead."""
_TENSORS = 256
"""So many tensors of a batch are told by their storage."""
_SHOWN = 6
_PIN_MEMORY = 7
"""The position of ``pin_memory`` among the arguments of ``DataLoader``, from 0."""
_DEPTH = 6


@dataclass(slots=True)
class _Facts:
    """A loader that was iterated; others may take its place, if they were made in the same place and are alike."""

    index: int
    place: int
    owner: Callable[[], object]
    seen: record.Loader
    """What is told of it, but for its place, its batches and whom it fed."""
    batches: int = 0
    latest: int = 0
    """Which iterator it was that fed last, by identity."""
    storages: deque[list[StorageWeakRef]] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))


@dataclass(slots=True)
class _Iteration:
    """An iterator of a loader, and the thread that pins its batches."""

    facts: _Facts
    length: int = 0
    """After so many batches the loop over an endless iterator begins anew; 0 for others."""
    batches: int = 0
    pinning: threading.Thread | None = None


class _Weakly:
    """Values for objects that live on without it, told apart by identity, since they may not be hashable."""

    def __init__(self) -> None:
        self._values: dict[int, tuple[weakref.ref[Any], Any]] = {}

    def set(self, key: object, value: object, gone: Callable[[], None] = lambda: None) -> None:
        """Remember a value until the key is freed; then ``gone`` is called."""
        number = id(key)

        def forget(reference: weakref.ref[Any]) -> None:
            self._values.pop(number, None)
            gone()

        self._values[number] = (weakref.ref(key, forget), value)

    def get(self, key: object) -> Any:
        """The value, or ``None``."""
        reference, value = self._values.get(id(key), (None, None))
        return value if reference is not None and reference() is key else None

    def items(self) -> Iterator[tuple[Any, Any]]:
        """The objects that are still there, with their values."""
        for reference, value in list(self._values.values()):
            key = reference()
            if key is not None:
                yield key, value


class Loaders(Listener):
    """The listener to loaders.

    It keeps no loader, iterator or batch alive, and adds nothing to them: they are pickled for workers, and refuse
    attributes.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.training: set[int] = set()
        """The indices of those which fed training steps."""
        self.gone: Callable[[int], None] = lambda index: None
        """Called when the iterator of a loader is freed while it was the one that fed last."""
        self._places = _Weakly()
        self._given = _Weakly()
        self._iterators = _Weakly()
        self._facts: list[_Facts] = []
        self._storages: dict[int, int] = {}

    def install(self) -> None:
        """Hook in."""
        init, begin = DataLoader.__init__, _BaseDataLoaderIter.__init__

        def made(loader: Any, *args: Any, **kwargs: Any) -> None:
            init(loader, *args, **kwargs)
            self.session.guarded(self._made, loader, len(args) > _PIN_MEMORY or "pin_memory" in kwargs)

        def iterated(iterator: Any, loader: Any, *args: Any, **kwargs: Any) -> None:
            # first, since the thread that pins is started by the original
            self.session.guarded(self._iterated, iterator, loader)
            begin(iterator, loader, *args, **kwargs)

        self.session.patches.set(DataLoader, "__init__", made)
        self.session.patches.set(_BaseDataLoaderIter, "__init__", iterated)

    def describe(self) -> Mapping[str, object]:
        """The loaders so far."""
        told = [
            replace(
                facts.seen,
                frame=self.session.frames.frame(facts.place),
                batches=facts.batches,
                training=facts.index in self.training,
            )
            for facts in self._facts
        ]
        return {"loaders": tuple(told)}

    # where loaders and iterators come from

    def _made(self, loader: Any, pin_memory_given: bool) -> None:
        frames = self.session.frames
        place = frames.here()
        if frames.resolve(place)[1] is not None:
            # made by a library: often the twin of a loader that it was given
            twins = [other for other, _ in self._places.items() if _dataset(other) is _dataset(loader)]
            sampled = [other for other in twins if other.batch_sampler is loader.batch_sampler]
            for twin in [*twins, *sampled][-1:]:
                # it hands on what its twin was made with
                place, pin_memory_given = self._places.get(twin), self._given.get(twin)
        self._places.set(loader, place)
        self._given.set(loader, pin_memory_given)

    def _iterated(self, iterator: Any, loader: Any) -> None:
        name = f"{type(loader).__module__}.{type(loader).__qualname__}"
        alike = record.Loader(
            name=name.replace("torch.utils.data.dataloader.", "torch.utils.data."),
            workers=int(getattr(loader, "num_workers", 0)),
            pin_memory=bool(getattr(loader, "pin_memory", False)),
            pin_memory_given=bool(self._given.get(loader)),
        )
        facts = self._facts_of(loader, self._places.get(loader) or NOWHERE, alike)
        self._follow(iterator, facts).length = _epoch_of_endless(loader)

    def _facts_of(self, loader: Any, place: int, alike: record.Loader) -> _Facts:
        for facts in self._facts:
            owner, seen = facts.owner(), facts.seen
            made = (facts.place, seen.name, seen.workers, seen.pin_memory)
            same = made == (place, alike.name, alike.workers, alike.pin_memory)
            # some libraries make a loader for each evaluation, and keep them all
            again = facts.index not in self.training and _dataset(owner) is _dataset(loader)
            if owner is loader or (same and (owner is None or again)):
                facts.owner = weakref.ref(loader)
                return facts
        self._facts.append(_Facts(len(self._facts), place, weakref.ref(loader), alike))
        return self._facts[-1]

    def _follow(self, iterator: Any, facts: _Facts) -> _Iteration:
        number, iteration = id(iterator), _Iteration(facts)

        def gone() -> None:
            if facts.latest == number:
                facts.latest = 0
                self.session.guarded(self.gone, facts.index)
            if iteration.pinning is not None:
                self.session.guarded(self.session.ledger.due, iteration.pinning)

        self._iterators.set(iterator, iteration, gone)
        return iteration

    def _iteration(self, iterator: Any) -> _Iteration:
        known: _Iteration | None = self._iterators.get(iterator)
        if known is not None:
            return known
        # made before the audit began
        workers, pin_memory = getattr(iterator, "_num_workers", 0), getattr(iterator, "_pin_memory", False)
        alike = record.Loader(name="torch.utils.data.DataLoader", workers=workers, pin_memory=pin_memory)
        return self._follow(iterator, self._facts_of(iterator, NOWHERE, alike))

    # what iterators do

    def asked(self, iterator: Any) -> tuple[int, bool]:
        """An iterator is asked for a batch; the index of its loader, and whether a loop over that begins anew."""
        iteration = self._iteration(iterator)
        iteration.facts.latest = id(iterator)
        anew = iteration.length > 0 and iteration.batches > 0 and iteration.batches % iteration.length == 0
        return iteration.facts.index, anew

    def delivered(self, iterator: Any, batch: Any) -> None:
        """An iterator has delivered a batch."""
        iteration = self._iteration(iterator)
        facts = iteration.facts
        facts.batches += 1
        iteration.batches += 1
        found = [tensor for tensor, _ in tensors_in(batch)]
        if iteration.pinning is not None:
            self.session.ledger.due(iteration.pinning, len(found))
        if len(facts.storages) == _REMEMBERED:
            for reference in facts.storages[0]:
                self._storages.pop(reference.cdata, None)
        references = [reference for reference in map(_storage, found) if reference is not None]
        facts.storages.append(references)
        for reference in references:
            self._storages[reference.cdata] = facts.index
        if facts.batches <= _LOOK_AT:
            self._look_at(facts, batch)

    def _look_at(self, facts: _Facts, batch: Any) -> None:
        found = list(tensors_in(batch))
        tensors = [tensor for tensor, _ in found]
        if not tensors:
            return
        hosted = [tensor for tensor in tensors if tensor.device.type == "cpu"]
        elsewhere = [tensor for tensor in tensors if tensor.device.type != "cpu"]
        facts.seen = replace(
            facts.seen,
            device=str((elsewhere or hosted)[0].device),
            pinned=all(map(_is_pinned, hosted)) if hosted else None,
            custom=any(custom for _, custom in found),
            batch=", ".join(map(describe, tensors[:_SHOWN])) + (", ..." if len(tensors) > _SHOWN else ""),
        )

    def failed(self, iterator: Any, error: Exception) -> None:
        """An iterator has raised an error."""
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        message = lines[-1] if lines else type(error).__name__
        if len(lines) > 1 and lines[0].startswith("Caught "):
            # the error of a worker or of the thread that pins comes with its traceback
            message = message.partition(": ")[2] or message
        facts = self._iteration(iterator).facts
        facts.seen = replace(facts.seen, error=message)

    # answers

    def loader_of(self, tensor: Any) -> int | None:
        """By the storage, which views share."""
        return self._storages.get(storage_of(tensor))

    def place_of_thread(self) -> int:
        """That of the loader whose batches this thread pins."""
        # not current_thread(), which would enter a thread of C++ into the script's list of threads
        thread = getattr(threading, "_active", {}).get(threading.get_ident())
        if thread is None:
            return NOWHERE
        queues = getattr(thread, "_args", ())
        iteration: _Iteration
        for iterator, iteration in self._iterators.items():
            # the thread may run before the iterator knows it
            queue = getattr(iterator, "_data_queue", None)
            if iteration.pinning is thread or (queue is not None and any(queue is item for item in queues)):
                iteration.pinning = thread
                self.session.ledger.works_ahead(thread)
                return iteration.facts.place
        return NOWHERE


def _epoch_of_endless(loader: Any) -> int:
    """How many batches a loader has that keeps one iterator for all epochs; 0 for any other, and where that is unknown.

    Its class says itself how long it is, since its sampler has no end, and hands out so many batches at a time.
    """
    kind = type(loader)
    if not isinstance(loader, DataLoader) or DataLoader.__iter__ is kind.__iter__ or DataLoader.__len__ is kind.__len__:
        return 0
    try:
        return len(loader)
    except Exception:  # code of the script, which may not be ready for it
        return 0


def _dataset(loader: Any) -> object:
    return getattr(loader, "dataset", loader)


def tensors_in(batch: Any) -> Iterator[tuple[torch.Tensor, bool]]:
    """The tensors of a batch, at most so many, each with whether it is inside an object that torch cannot pin."""
    waiting: deque[tuple[Any, bool, int]] = deque([(batch, False, 0)])
    found = 0
    while waiting and found < _TENSORS:
        value, custom, depth = waiting.popleft()
        if isinstance(value, torch.Tensor):
            found += 1
            yield value, custom
        elif depth < _DEPTH:
            parts, opaque = _parts(value)
            waiting.extend((part, custom or opaque, depth + 1) for part in parts)


def _parts(value: Any) -> tuple[Sequence[Any], bool]:
    """What a value is made of, and whether torch's ``pin_memory`` would not look into it."""
    if value is None or isinstance(value, (str, bytes, int, float, complex, type)):
        return (), False
    if isinstance(value, (list, tuple)):
        return value[:_TENSORS], False
    if isinstance(value, Mapping):
        return list(value.values())[:_TENSORS], False
    opaque = not callable(getattr(type(value), "pin_memory", None))
    if is_dataclass(value):
        return [getattr(value, item.name, None) for item in fields(value)], opaque
    return list(getattr(value, "__dict__", {}).values())[:_TENSORS], opaque


def _storage(tensor: torch.Tensor) -> StorageWeakRef | None:
    # A weak reference, as an address alone would soon belong to another storage.
    try:
        return StorageWeakRef(tensor.untyped_storage())  # type: ignore[no-untyped-call]  # torch's own
    except (RuntimeError, NotImplementedError, AttributeError):  # sparse, fake and the like
        return None


def _is_pinned(tensor: torch.Tensor) -> bool:
    if torch.cuda.is_available() and not torch.cuda._initialized:
        return False  # nothing can be pinned yet, and asking must not be what initialises CUDA
    return bool(tensor.is_pinned())
