"""What is known of loaders: where they were made, what their batches are, and whose batch a tensor is."""

from __future__ import annotations

import collections
import dataclasses
import gc
import pickle
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

from devlint import record
from devlint.auditor.frames import NOWHERE
from devlint.auditor.loop.hooks import LoopHooks
from devlint.auditor.loop.loaders import Loaders, tensors_in
from devlint.auditor.session import Session, Settings


@contextmanager
def audited() -> Iterator[Session]:
    session = Session(Settings())
    loaders = Loaders(session)
    session.start([loaders, LoopHooks(session, loaders)])
    try:
        yield session
    finally:
        session.stop()
        assert not session.failure


def loaders_of(session: Session) -> tuple[record.Loader, ...]:
    return session.process(record.Ending()).loaders


def data(size: int = 8) -> TensorDataset:
    return TensorDataset(torch.zeros(size, 3), torch.arange(size))


class Point:
    """Neither a collection nor a tensor; torch pins it only by a method of its own."""

    def __init__(self, position: Any) -> None:
        self.position = position


@dataclasses.dataclass
class Sample:
    image: Any
    name: str


Pair = collections.namedtuple("Pair", "x y")


def test_a_loader_is_described() -> None:
    with audited() as session:
        line = sys._getframe().f_lineno + 1
        loader = DataLoader(data(), batch_size=4)
        assert loaders_of(session) == ()  # it is told of when it is iterated
        for _ in loader:
            pass
        (found,) = loaders_of(session)
    assert found.frame is not None
    assert (found.frame.file, found.frame.line) == (__file__, line)
    assert found.name == "torch.utils.data.DataLoader"
    assert (found.workers, found.pin_memory, found.device, found.pinned) == (0, False, "cpu", False)
    assert (found.batches, found.batch) == (2, "float32[4, 3], int64[4]")
    assert (found.custom, found.training, found.error) == (False, False, "")


def test_a_subclass_is_named_and_blamed_where_it_calls_its_base() -> None:
    class Own(DataLoader):  # type: ignore[type-arg]  # of whatever
        def __init__(self, dataset: Any) -> None:
            super().__init__(dataset, batch_size=2)

    with audited() as session:
        next(iter(Own(data())))
        (found,) = loaders_of(session)
    assert found.name == f"{__name__}.{Own.__qualname__}"
    assert found.frame is not None
    assert found.frame.line == Own.__init__.__code__.co_firstlineno + 1


def test_loaders_of_one_helper_are_told_apart_while_they_live_and_not_piled_up() -> None:
    def make(dataset: Any) -> Any:
        return DataLoader(dataset, batch_size=4)

    with audited() as session:
        first, second = make(data()), make(data(12))
        for loader in (first, second):
            for _ in loader:
                pass
        assert [found.batches for found in loaders_of(session)] == [2, 3]
        del first, second, loader
        gc.collect()
        for _ in range(5):
            for _ in make(data()):
                pass
        assert [found.batches for found in loaders_of(session)] == [12, 3]


def test_an_iterator_from_before_the_audit_is_heard() -> None:
    iterator = iter(DataLoader(data(), batch_size=4))
    with audited() as session:
        next(iterator)
        (found,) = loaders_of(session)
    assert (found.frame, found.batches, found.batch) == (None, 1, "float32[4, 3], int64[4]")


def test_a_tensor_is_known_by_its_storage() -> None:
    with audited() as session:
        first, second = iter(DataLoader(data(), 4)), iter(DataLoader(data(), 4))
        x, y = next(first)
        other, _ = next(second)
        assert (
            session.signals.loader_of(x)
            == session.signals.loader_of(y)
            == session.signals.loader_of(x[1:, :2].t())
            == 0
        )
        assert session.signals.loader_of(other) == 1
        assert session.signals.loader_of(x.clone()) is None
        assert session.signals.loader_of(torch.ones(2).to_sparse()) is None


def test_the_memory_of_a_batch_that_was_freed_is_nobodys() -> None:
    with audited() as session:
        for x, _ in DataLoader(data(), 4):
            del x, _
            fresh = [torch.zeros(4, 3) for _ in range(50)]
            assert all(session.signals.loader_of(tensor) is None for tensor in fresh)


def test_a_batch_read_ahead_is_remembered_for_a_while() -> None:
    with audited() as session:
        batches = list(DataLoader(data(), 1))
        known = [session.signals.loader_of(x) for x, _ in batches]
        assert known == [None] * 4 + [0] * 4


class Repeated:
    """Batches for ever."""

    def __init__(self, sampler: Any) -> None:
        self.sampler = sampler

    def __iter__(self) -> Iterator[Any]:
        while True:
            yield from self.sampler


class OneIterator(DataLoader):  # type: ignore[type-arg]  # of whatever
    """One that keeps its workers: the same iterator serves all epochs."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        object.__setattr__(self, "batch_sampler", Repeated(self.batch_sampler))
        self.iterator = super().__iter__()

    def __len__(self) -> int:
        return len(self.batch_sampler.sampler)  # type: ignore[union-attr]  # it is of the class above

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]  # as such classes have it
        for _ in range(len(self)):
            yield next(self.iterator)


class Counting(DataLoader):  # type: ignore[type-arg]  # of whatever
    """One that ends after each epoch as any other."""

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]  # as such classes have it
        yield from super().__iter__()


@pytest.mark.parametrize(("kind", "anew"), [(OneIterator, [2, 4]), (Counting, []), (DataLoader, [])])
def test_an_endless_iterator_begins_anew_after_its_epoch(kind: Any, anew: list[int]) -> None:
    told: list[bool] = []
    with audited() as session:
        loaders = next(one for one in session.listeners if isinstance(one, Loaders))
        original = loaders.asked

        def asked(iterator: Any) -> tuple[int, bool]:
            found = original(iterator)
            told.append(found[1])
            return found

        loaders.asked = asked  # type: ignore[method-assign]  # to listen
        loader = kind(data(), 4)
        for _ in range(3):
            assert len(list(loader)) == 2
    assert [number for number, one in enumerate(told) if one] == anew


@pytest.mark.parametrize(
    ("batch", "sizes", "custom"),
    [
        ([torch.ones(1), {"a": torch.ones(2), "b": [torch.ones(3)]}], [1, 2, 3], False),
        (Pair(torch.ones(1), torch.ones(2)), [1, 2], False),
        (collections.UserDict(a=torch.ones(4)), [4], False),
        ("text", [], False),
        (Point(torch.ones(5)), [5], True),
        ([torch.ones(1), Sample(torch.ones(2), "cat")], [1, 2], True),
        ({"graph": [Point(torch.ones(6))]}, [6], True),
        ([1, 2.0, None, b"bytes", object()], [], False),
    ],
    ids=["nested", "namedtuple", "UserDict", "text", "object", "dataclass", "object in a list", "no tensor"],
)
def test_tensors_are_found_in_batches_of_all_kinds(batch: Any, sizes: list[int], custom: bool) -> None:
    found = list(tensors_in(batch))
    assert sorted(len(tensor) for tensor, _ in found) == sizes
    assert any(opaque for _, opaque in found) == custom


def test_a_batch_that_contains_itself_ends() -> None:
    batch: list[Any] = [torch.ones(1)]
    batch.append(batch)
    assert 0 < len(list(tensors_in(batch))) < 20


def test_batches_that_torch_cannot_pin_are_known() -> None:
    with audited() as session:
        for _ in DataLoader(data(), 4, collate_fn=lambda items: Point(torch.stack([x for x, _ in items]))):
            pass
        (found,) = loaders_of(session)
    assert found.custom
    assert found.batch == "float32[4, 3]"


def test_batches_that_are_on_a_device_already_are_known() -> None:
    class Placed(Dataset):  # type: ignore[type-arg]  # of whatever
        def __len__(self) -> int:
            return 4

        def __getitem__(self, index: int) -> Any:
            return torch.zeros(3, device="meta")

    with audited() as session:
        for _ in DataLoader(Placed(), 2):
            pass
        (found,) = loaders_of(session)
    assert (found.device, found.pinned) == ("meta", None)


UNPINNABLE = "cannot pin 'torch.cuda.FloatTensor' only dense CPU tensors can be pinned"


@pytest.mark.parametrize("where", ["", "in pin memory thread for device 0"])
def test_why_a_loader_failed_is_known(where: str) -> None:
    """The error of a worker or a thread comes with its traceback; what is wanted is its message."""

    class Broken(Dataset):  # type: ignore[type-arg]  # of whatever
        def __len__(self) -> int:
            return 4

        def __getitem__(self, index: int) -> Any:
            try:
                raise RuntimeError(UNPINNABLE)
            except RuntimeError:
                if not where:
                    raise
                torch._utils.ExceptionWrapper(where=where).reraise()

    with audited() as session:
        with pytest.raises(RuntimeError, match="cannot pin"):
            next(iter(DataLoader(Broken())))
        (found,) = loaders_of(session)
    assert found.error == UNPINNABLE


def test_loaders_are_pickled_and_sent_to_workers_as_ever() -> None:
    with audited() as session:
        loader = DataLoader(data(), 4, num_workers=1, multiprocessing_context="spawn")
        assert [len(x) for x, _ in loader] == [4, 4]
        copied = pickle.loads(pickle.dumps(DataLoader(data(), 4)))
        assert vars(copied).keys() == vars(DataLoader(data(), 4)).keys()
        assert [len(x) for x, _ in copied] == [4, 4]
        assert [found.workers for found in loaders_of(session)] == [1, 0]


def test_what_the_thread_that_pins_does_is_blamed_on_its_loader_and_counted_when_delivered() -> None:
    """Without an accelerator nothing is pinned, so the thread is played: it shares its queue with the iterator."""
    from devlint.auditor.history import What

    pin = What("pin", "pin_memory")
    with audited() as session:
        loaders = [DataLoader(data(), 4), DataLoader(data(), 4)]
        iterators = [iter(loader) for loader in loaders]
        queues: list[Queue[int]] = [Queue(), Queue()]
        for iterator, queue in zip(iterators, queues, strict=True):
            iterator._data_queue = queue  # type: ignore[attr-defined]  # as one with workers has
        done = threading.Event()

        def loop(in_queue: object, out_queue: Queue[int]) -> None:
            out_queue.put(session.signals.place_of_thread())
            for _ in range(4):
                session.ledger.add(pin)
            out_queue.put(0)
            done.wait(10)

        threads = [threading.Thread(target=loop, args=(None, queue)) for queue in queues]
        for thread in threads:
            thread.start()
        places = [queue.get(timeout=120) for queue in queues]
        frames = [session.frames.resolve(place)[0] for place in places]
        assert all(frame is not None and frame.file == __file__ for frame in frames)
        assert places[0] != places[1]  # two calls on one line
        for queue in queues:
            queue.get(timeout=120)
        assert pin not in session.ledger.pending
        next(iterators[0])  # two tensors
        assert pin not in session.ledger.pending  # they are kept for the step of the batch
        found = {event.phase: event.calls for event in session.process(record.Ending()).events}
        assert sum(found.values()) == 8
        del iterator, iterators  # the four of the other loader and two of this one were for nothing
        assert [event.calls for event in session.process(record.Ending()).events] == [8]
        done.set()
        for thread in threads:
            thread.join()
        assert session.signals.place_of_thread() == NOWHERE


class Pinnable(Point):
    """As a batch of a library for graphs is: torch calls its method."""

    def pin_memory(self) -> Pinnable:
        return self


def test_what_has_a_method_to_pin_it_is_no_batch_that_torch_cannot_pin() -> None:
    assert [custom for _, custom in tensors_in([Point(torch.zeros(1))])] == [True]
    assert [custom for _, custom in tensors_in([Pinnable(torch.zeros(1))])] == [False]
    assert [custom for _, custom in tensors_in([Point(Pinnable(torch.zeros(1)))])] == [True]


def test_whether_somebody_decided_not_to_pin() -> None:
    def factory(pin_memory: bool = False, **options: Any) -> DataLoader[Any]:
        return DataLoader(data(), pin_memory=pin_memory, **options)

    with audited() as session:
        loaders = [DataLoader(data()), factory(batch_size=2), DataLoader(data(), 1, False, None, None, 0, None, False)]
        for loader in loaders:
            next(iter(loader))
        assert [found.pin_memory_given for found in loaders_of(session)] == [False, True, True]


def test_a_library_that_copies_a_loader_decides_nothing(tmp_path: Path) -> None:
    """It hands on each argument, whoever gave it."""
    library = tmp_path / "site-packages" / "trainers.py"
    library.parent.mkdir()
    code = "def again(loader):\n    return type(loader)(loader.dataset, pin_memory=loader.pin_memory)\n"
    names: dict[str, Any] = {}
    exec(compile(code, str(library), "exec"), names)
    with audited() as session:
        given = DataLoader(data())
        next(iter(names["again"](given)))
        assert [found.pin_memory_given for found in loaders_of(session)] == [False]
