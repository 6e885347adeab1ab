"""The recorder at the dispatch key of the CPU, where it can be put in and taken out of one process.

Two CPU tensors are on one device, so no copy between them is a transfer; reads and syncs are counted as on any device.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch.torch_version import TorchVersion

from devlint.auditor.listeners import listeners
from devlint.auditor.recorder.kernels import Kernels
from devlint.auditor.session import Session, Settings
from devlint.record import Ending, Event

needs_kernels = pytest.mark.skipif(not hasattr(torch.library, "get_kernel"), reason="torch is older than 2.9")


@contextmanager
def audited() -> Iterator[Session]:
    session = Session(Settings(key="CPU", roots=(os.path.dirname(__file__),)))
    session.start(listeners(session))
    assert not session.failure
    try:
        yield session
    finally:
        session.stop()


def events(session: Session) -> tuple[Event, ...]:
    session.ledger.settle(session.ledger.take(), "setup", step=False)
    return session.process(Ending()).events


def line() -> int:
    return sys._getframe(1).f_lineno


@needs_kernels
def test_a_read_is_a_blocking_copy_to_the_host() -> None:
    with audited() as session:
        total = torch.ones(3).sum()
        at = line() + 1
        total.item()
        (event,) = events(session)
    assert (event.kind, event.name, event.source, event.target) == ("copy", "item", "cpu", "cpu")
    assert (event.calls, event.bytes, event.blocking) == (1, 4, True)
    assert event.example == "float32[]"
    assert event.frame is not None
    assert (event.frame.file, event.frame.line) == (__file__, at)
    assert event.threads == ("MainThread",)


@needs_kernels
def test_numbers_and_conditions_are_reads() -> None:
    with audited() as session:
        one = torch.ones((), dtype=torch.float64)
        float(one), int(one), bool(one > 0)
        found = events(session)
    # the comparison is a tensor of one byte, the numbers take eight
    assert (
        sorted((event.calls, event.bytes) for event in found) == [(1, 1), (2, 16)]
        or sum(event.bytes for event in found) == 17
    )


@needs_kernels
def test_a_mask_is_searched_by_nonzero() -> None:
    with audited() as session:
        values = torch.tensor([1.0, -1.0, 2.0])
        picked = values[values > 0]
        found = events(session)
    assert picked.tolist() == [1.0, 2.0]
    assert [(event.kind, event.name, event.calls) for event in found] == [("sync", "nonzero", 1)]


@needs_kernels
def test_what_a_sync_reads_inside_is_part_of_it() -> None:
    with audited() as session:
        values = torch.tensor([1.0, -1.0, 2.0])
        values.masked_select(values > 0)
        torch.unique(values)
        torch.equal(values, values.clone())
        found = events(session)
    assert sorted((event.kind, event.name, event.calls) for event in found) == [
        ("sync", "equal", 1),
        ("sync", "masked_select", 1),
        ("sync", "unique", 1),
    ]


@needs_kernels
def test_what_waits_at_the_key_of_sparse_tensors() -> None:
    twice = torch.sparse_coo_tensor([[0, 0]], [1.0, 2.0], (2,))
    with audited() as session:
        assert twice.coalesce().values().tolist() == [3]
        twice.coalesce().coalesce()
        assert [(event.kind, event.name, event.calls) for event in events(session) if event.kind == "sync"] == [
            ("sync", "coalesce", 1),
            ("sync", "coalesce", 1),
        ]
    assert twice.coalesce()._nnz() == 1


@needs_kernels
def test_copies_on_one_device_are_no_transfers() -> None:
    with audited() as session:
        values = torch.ones(4)
        values.double(), values.clone(), values.t().contiguous()
        values.copy_(torch.zeros(4))
        assert events(session) == ()


@needs_kernels
def test_numbers_that_the_dispatcher_unpacks_keep_their_value() -> None:
    def compute() -> list[torch.Tensor]:
        step = torch.tensor(3)
        step += 2
        exact = torch.zeros(2, dtype=torch.float64)
        exact += 0.1  # as a float32 it would be 0.10000000149
        with torch.device("meta"):  # a default device is not that of the number
            (step > 1).double()
            step += 1
        return [step, exact, torch.zeros(2, dtype=torch.complex64) + 2j, torch.zeros(2, dtype=torch.bool) | True]

    without = compute()
    with audited():
        inside = compute()
    for expected, found in zip(without, inside, strict=True):
        assert torch.equal(expected, found)
        assert expected.dtype == found.dtype
    assert inside[1][0].item() == 0.1


@needs_kernels
def test_training_is_bit_identical() -> None:
    def train() -> list[torch.Tensor]:
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1))
        optimizer = torch.optim.Adam(model.parameters())
        for _ in range(3):
            optimizer.zero_grad()
            with torch.autocast("cpu", torch.bfloat16):
                loss = model(torch.randn(16, 4)).float().pow(2).mean()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        return [parameter.detach().clone() for parameter in model.parameters()] + [loss.detach(), torch.rand(3)]

    without = train()
    with audited():
        inside = train()
    assert all(torch.equal(expected, found) for expected, found in zip(without, inside, strict=True))


@needs_kernels
def test_afterwards_nothing_is_counted_and_everything_works() -> None:
    with audited() as session:
        pass
    assert torch.ones(3).sum().item() == 3
    assert torch.ones(3)[torch.ones(3) > 0].shape == (3,)
    assert torch.zeros(2).copy_(torch.ones(2, dtype=torch.float64)).tolist() == [1, 1]
    assert events(session) == ()
    with audited() as again:
        torch.ones(()).item()
        assert len(events(again)) == 1


@needs_kernels
def test_a_bug_in_the_recorder_switches_it_off_and_the_script_runs_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with audited() as session:
        monkeypatch.setattr(session.ledger, "add", lambda *_: 1 / 0)
        assert torch.ones(3).sum().item() == 3
        assert not session.alive
        assert torch.ones(2).nonzero().tolist() == [[0], [1]]
        assert torch.zeros(2).add_(1).double().tolist() == [1, 1]
    assert "division by zero" in session.failure
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "switched off" in error


@needs_kernels
def test_the_originals_errors_come_through() -> None:
    with audited() as session:
        with pytest.raises(RuntimeError, match=r"cannot be converted to Scalar|has 2 elements|Scalar"):
            torch.ones(2).item()
        with pytest.raises(RuntimeError, match="size of tensor"):
            torch.zeros(2).copy_(torch.zeros(3))
        assert events(session) == ()
        assert session.alive


@needs_kernels
def test_other_threads_and_compiled_code_are_seen() -> None:
    compiled = torch.compile(lambda values: values.sum().item(), backend="eager")
    with audited() as session:
        worker = threading.Thread(target=lambda: torch.ones(()).item(), name="worker")
        worker.start()
        worker.join()
        compiled(torch.ones(3))
        found = events(session)
    assert ("worker",) in [event.threads for event in found]
    assert sum(event.calls for event in found if event.threads == ("MainThread",)) == 1


@needs_kernels
def test_the_audits_own_functions_are_not_compiled(recwarn: pytest.WarningsRecorder) -> None:
    """Below a graph break Dynamo meets every Python function that is called, the kernels too."""
    import torch._dynamo

    torch._dynamo.reset()
    compiled = torch.compile(lambda values: values.sum().item() + values[values > 0].sum(), backend="eager")
    with audited() as session:
        for _ in range(3):
            compiled(torch.ones(3))
        assert sum(event.calls for event in events(session)) == 6
    assert [str(warning.message) for warning in recwarn if "Dynamo" in str(warning.message)] == []


@needs_kernels
def test_inference_mode_is_seen_and_undisturbed() -> None:
    with audited() as session, torch.inference_mode():
        assert torch.ones(3).sum().item() == 3
        assert len(events(session)) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_a_forked_child_counts_nothing() -> None:
    session = Session(Settings(key="CPU"))
    session.alive = True
    child = os.fork()
    if child == 0:
        os._exit(int(session.alive))
    assert os.waitpid(child, 0)[1] == 0
    assert session.alive


def test_a_torch_without_an_accelerator_is_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    from devlint.auditor.recorder.backends import find_key

    if find_key():
        pytest.skip("this torch was built with an accelerator")
    session = Session(Settings())
    session.start(listeners(session))
    session.stop()
    assert "--simulate" in capsys.readouterr().err


def test_a_torch_that_is_too_old_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "__version__", TorchVersion("2.2.2+cu121"))
    session = Session(Settings(key="CPU"))
    session.start(listeners(session))
    session.stop()
    assert session.failure.endswith("torch 2.2.2+cu121 is too old for the audit, which needs torch 2.3 or newer")


def test_a_torch_whose_kernels_take_no_keyset_shows_its_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """As 2.3."""
    monkeypatch.delattr(torch.library, "get_kernel", raising=False)
    library = torch._C._dispatch_library

    class Old:
        def __init__(self, *args: Any) -> None:
            self.new = library(*args)
            self.reset = self.new.reset

        def impl(self, name: str, key: str, kernel: Any) -> None:
            self.new.impl(name, key, kernel)

    monkeypatch.setattr(torch._C, "_dispatch_library", Old)
    with audited() as session:
        assert torch.zeros(2).copy_(torch.ones(2)).tolist() == [1, 1]
        (copies,) = (listener for listener in session.listeners if isinstance(listener, Kernels))
        assert copies.calls == 1


def test_a_torch_that_hands_no_kernels_out_still_shows_its_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    if hasattr(torch.library, "get_kernel"):
        monkeypatch.delattr(torch.library, "get_kernel")
    with audited() as session:
        values = torch.zeros(2, requires_grad=True)
        values.double().sum().backward()
        assert values.grad is not None
        assert torch.zeros(2).copy_(torch.ones(2)).tolist() == [1, 1]
        assert torch.ones(()).item() == 1
        assert "older than 2.9" in session.notes[0]
