"""What the recorder counts on a device, and whom it blames."""

from __future__ import annotations

import inspect
import io
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from typing import Any

import torch
from torch import nn

from devlint.auditor.recorder.attribution import Attribution
from devlint.auditor.recorder.kernels import Kernels
from devlint.auditor.recorder.syncwarnings import SyncWarnings
from devlint.auditor.recorder.waits import Waits
from devlint.auditor.session import Listener, Session, Settings
from devlint.record import Ending, Event
from devlint.simulator import backend

DEVICES = 2
DEVICE = torch.device("cuda", 0)
SECOND = torch.device("cuda", 1)
HERE, THERE, OTHER = "cpu", str(DEVICE), str(SECOND)


def recorder(session: Session) -> list[Listener]:
    """The listeners to copies and waits, without those to models, loaders and steps."""
    attribution, waits = Attribution(session), Waits(session)
    warnings = SyncWarnings(session, attribution, waits)
    return [attribution, waits, warnings, Kernels(session, attribution, waits, warnings)]


@contextmanager
def audited() -> Iterator[Session]:
    session = Session(Settings(key=backend.KEY, kernels=backend.KERNELS, roots=(os.path.dirname(__file__),)))
    session.start(recorder(session))
    assert not session.failure, session.failure
    try:
        yield session
        assert not session.failure, session.failure
    finally:
        session.stop()


def seen(work: Callable[[], object]) -> list[Event]:
    """The events of some work, those with the most bytes first."""
    with audited() as session:
        work()
        session.ledger.settle(session.ledger.take(), "setup", step=False)
        return list(session.process(Ending()).events)


def only(work: Callable[[], object]) -> Event:
    found = seen(work)
    assert len(found) == 1, found
    return found[0]


def lines(function: Callable[..., object], text: str) -> list[int]:
    """The lines of a function that hold a text."""
    source, start = inspect.getsourcelines(function)
    return [start + index for index, line in enumerate(source) if text in line]


def facts(event: Event, *names: str) -> tuple[Any, ...]:
    return tuple(getattr(event, name) for name in names)


def case_to_the_device() -> None:
    event = only(lambda: torch.ones(2, 3).to(DEVICE))
    assert facts(event, "kind", "name", "source", "target") == ("copy", "copy_", HERE, THERE)
    assert facts(event, "calls", "bytes") == (1, 24)
    assert facts(event, "pinned", "blocking", "non_blocking", "temporary") == (False, True, False, False)
    assert event.example == "float32[2, 3]"
    assert event.frame is not None
    assert event.frame.line == lines(case_to_the_device, "torch.ones(2, 3)")[0]
    assert event.threads == ("MainThread",)


def case_back_to_the_host() -> None:
    tensor = torch.ones(2, 3, device=DEVICE)
    event = only(lambda: tensor.cpu())
    assert facts(event, "source", "target", "bytes", "pinned", "blocking") == (THERE, HERE, 24, False, True)


def case_between_devices() -> None:
    tensor = torch.ones(2, 3, device=DEVICE)
    event = only(lambda: tensor.to(SECOND))
    assert facts(event, "source", "target", "bytes", "pinned", "blocking") == (THERE, OTHER, 24, None, False)


def case_on_one_device_nothing_is_transferred() -> None:
    tensor = torch.ones(2, 3, device=DEVICE)

    def work() -> None:
        tensor.clone(), tensor.half(), tensor.t().contiguous()
        tensor.copy_(torch.zeros(2, 3, device=DEVICE))
        tensor.to(DEVICE)
        torch.zeros(0, device=DEVICE).cpu()

    assert seen(work) == []


def case_pinned_and_asynchronous() -> None:
    pageable, pinned = torch.ones(4), torch.ones(4).pin_memory()
    event = only(lambda: pinned.to(DEVICE, non_blocking=True))
    assert facts(event, "pinned", "blocking", "non_blocking") == (True, False, True)
    event = only(lambda: pinned.to(DEVICE))
    assert facts(event, "pinned", "blocking", "non_blocking") == (True, True, False)
    # whether the host waits for a copy that is staged is up to the driver
    event = only(lambda: pageable.to(DEVICE, non_blocking=True))
    assert facts(event, "pinned", "blocking", "non_blocking") == (False, None, True)
    device = torch.ones(4, device=DEVICE)
    event = only(lambda: device.to("cpu", non_blocking=True))
    assert facts(event, "pinned", "blocking", "non_blocking") == (True, False, True)
    event = only(lambda: pageable.copy_(device, non_blocking=True))
    assert facts(event, "pinned", "blocking", "non_blocking") == (False, True, True)


def case_pinning() -> None:
    event = only(lambda: torch.ones(4).pin_memory())
    assert facts(event, "kind", "name", "calls", "bytes", "example") == ("pin", "pin_memory", 1, 16, "float32[4]")


def case_a_changed_dtype_crosses_once_and_as_the_narrow_side_converts() -> None:
    # a blocking copy converts on the host: 6 elements of 2 bytes cross to the device, 6 of 4 back from it
    event = only(lambda: torch.ones(2, 3).to(DEVICE, torch.float16))
    assert facts(event, "calls", "bytes", "temporary", "example") == (1, 12, True, "float32[2, 3]")
    tensor = torch.ones(2, 3, device=DEVICE)
    event = only(lambda: tensor.to("cpu", torch.float16))
    assert facts(event, "calls", "bytes", "temporary") == (1, 24, True)
    # an asynchronous one converts on the device
    event = only(lambda: torch.ones(2, 3).to(DEVICE, torch.float16, non_blocking=True))
    assert facts(event, "calls", "bytes", "temporary") == (1, 24, True)


def case_gaps_need_a_temporary_tensor_and_another_order_does_not() -> None:
    table = torch.ones(4, 6)
    event = only(lambda: table[:, ::2].to(DEVICE))
    assert facts(event, "calls", "bytes", "temporary") == (1, 48, True)
    event = only(lambda: table.t().to(DEVICE))
    assert facts(event, "calls", "bytes", "temporary") == (1, 96, False)


def case_reads() -> None:
    total = torch.ones((), dtype=torch.float64, device=DEVICE)
    event = only(lambda: [read(total) for read in (torch.Tensor.item, float, int, bool)])
    assert facts(event, "kind", "name", "source", "target") == ("copy", "item", THERE, HERE)
    assert facts(event, "calls", "bytes", "blocking", "pinned") == (4, 32, True, None)


def case_lists_are_copied_as_a_whole() -> None:
    tensor = torch.ones(4, device=DEVICE)
    event = only(lambda: tensor.tolist())
    assert facts(event, "name", "calls", "bytes") == ("copy_", 1, 16)


def case_syncs() -> None:
    values = torch.tensor([1.0, -1.0, 2.0], device=DEVICE)
    found = seen(lambda: (values.nonzero(), values.unique(), values.masked_select(values > 0), values.equal(values)))
    assert sorted(facts(event, "kind", "name", "calls", "bytes") for event in found) == [
        ("sync", name, 1, 0) for name in ("equal", "masked_select", "nonzero", "unique")
    ]


def case_a_mask_is_searched_by_nonzero() -> None:
    values = torch.tensor([1.0, -1.0, 2.0], device=DEVICE)
    event = only(lambda: values[values > 0])
    assert facts(event, "kind", "name", "calls", "source") == ("sync", "nonzero", 1, THERE)


def case_indices_from_the_host_are_copied() -> None:
    values, chosen = torch.ones(8, device=DEVICE), torch.tensor([1, 2, 3])
    event = only(lambda: values[chosen])
    assert facts(event, "name", "source", "target", "bytes") == ("copy_", HERE, THERE, 24)


def case_tensors_made_of_lists_are_copied() -> None:
    like = torch.ones(1, device=DEVICE)
    found = seen(lambda: (torch.tensor([1.0, 2.0], device=DEVICE), like.new_tensor([3.0, 4.0])))
    assert [facts(event, "source", "target", "calls", "bytes") for event in found] == [(HERE, THERE, 1, 8)] * 2


def case_other_threads() -> None:
    def work() -> None:
        worker = threading.Thread(target=lambda: torch.ones(4).to(DEVICE), name="prefetch")
        worker.start()
        worker.join()

    event = only(work)
    assert event.threads == ("prefetch",)
    assert event.frame is not None
    assert event.frame.line == lines(case_other_threads, "torch.ones(4)")[0]


def case_compiled_functions() -> None:
    function = torch.compile(lambda values: values.sum() + 1, backend="eager")
    event = only(lambda: function(torch.ones(4)).to(DEVICE))
    assert event.calls == 1


def case_autocast_casts_are_no_transfers() -> None:
    layer, batch = nn.Linear(4, 4).to(DEVICE), torch.ones(2, 4, device=DEVICE)

    def work() -> None:
        with torch.autocast("cuda", torch.bfloat16):
            assert layer(batch).dtype == torch.bfloat16

    assert seen(work) == []


def case_backward_is_blamed_on_the_forward_line() -> None:
    weight = torch.ones(4, 4, requires_grad=True)
    batch = torch.ones(2, 4, device=DEVICE)

    def forward() -> torch.Tensor:
        there = weight.to(DEVICE)  # back from the device in backward
        return (batch @ there).cpu().sum()  # to the device in backward

    def work() -> None:
        forward().backward()

    found = {facts(event, "source", "backward"): event for event in seen(work)}
    assert len(found) == 4
    assert all(event.calls == 1 for event in found.values())
    to, back = lines(case_backward_is_blamed_on_the_forward_line, "in backward\n")
    assert [found[HERE, False].frame.line, found[THERE, True].frame.line] == [to, to]
    assert [found[THERE, False].frame.line, found[HERE, True].frame.line] == [back, back]
    # 16 weights come back, the gradient of the 8 results goes to the device
    assert [found[THERE, True].bytes, found[HERE, True].bytes] == [64, 32]


def case_backward_of_an_unknown_forward_is_blamed_on_the_backward() -> None:
    weight = torch.ones(4, requires_grad=True)
    total = weight.to(DEVICE).sum()
    event = only(lambda: total.backward())
    assert facts(event, "source", "target", "backward", "bytes") == (THERE, HERE, True, 16)
    assert event.frame is not None
    assert event.frame.line == lines(case_backward_of_an_unknown_forward_is_blamed_on_the_backward, "total.back")[0]


def case_hooks_and_functions_of_the_project_in_backward() -> None:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, value: torch.Tensor) -> torch.Tensor:
            return value * 2

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            float(grad.sum())  # in the function
            return grad * 2

    weight = torch.ones(4, device=DEVICE, requires_grad=True)

    def look(grad: torch.Tensor) -> None:
        grad.cpu()  # in the hook

    weight.register_hook(look)
    found = {event.name: event for event in seen(lambda: Double.apply(weight).sum().backward())}
    here = case_hooks_and_functions_of_the_project_in_backward
    assert found["item"].frame.line == lines(here, "# in the function")[0]
    assert found["copy_"].frame.line == lines(here, "# in the hook")[0]
    assert found["item"].backward
    assert found["copy_"].backward


def case_numbers_of_two_threads_are_not_confused() -> None:
    def forward(weight: torch.Tensor, sums: list[torch.Tensor]) -> None:
        sums.append(weight.to(DEVICE).sum())

    def again(weight: torch.Tensor, sums: list[torch.Tensor]) -> None:
        sums.append(weight.to(DEVICE).mean())

    def work() -> None:
        sums: list[torch.Tensor] = []
        for target in (forward, again):  # both threads count their operations from 0
            worker = threading.Thread(target=target, args=(torch.ones(4, requires_grad=True), sums))
            worker.start()
            worker.join()
        for total in sums:
            total.backward()

    found = [event for event in seen(work) if event.backward]
    blamed = lines(case_numbers_of_two_threads_are_not_confused, "total.backward()\n")
    assert [event.frame.line for event in found if event.frame] == blamed * 2


def case_repeats() -> None:
    constant, growing = torch.ones(4), torch.ones(4)

    def work() -> None:
        for _ in range(5):
            constant.to(DEVICE)
            growing.to(DEVICE)
            growing.add_(1)
            torch.ones(4).to(DEVICE)  # a fresh tensor, perhaps where the last one was

    found = {event.frame.line: event for event in seen(work) if event.frame}
    first = lines(case_repeats, "constant.to")[0]
    assert [found[first + offset].repeats for offset in (0, 1, 3)] == [4, 0, 0]
    assert [found[first + offset].calls for offset in (0, 1, 3)] == [5, 5, 5]


def case_what_two_lines_copy_is_doubled() -> None:
    def work() -> None:
        for _ in range(3):
            batch = torch.ones(4)
            batch.to(DEVICE)
            batch.to(DEVICE)
            batch.add_(1)
            batch.to(DEVICE)  # not what it was

    found = {event.frame.line: event for event in seen(work) if event.frame}
    first = lines(case_what_two_lines_copy_is_doubled, "batch.to")[0]
    assert [(found[first + offset].doubled, found[first + offset].repeats) for offset in (0, 1, 3)] == [
        (0, 0),
        (3, 0),
        (0, 0),
    ]
    twin = found[first + 1].double
    assert twin is not None
    assert twin.line == first


def case_repeats_see_what_numpy_writes() -> None:
    for size in (8, 1 << 20):
        tensor = torch.zeros(size)
        array = tensor.numpy()

        def work(tensor: torch.Tensor = tensor, array: Any = array) -> None:
            for step in range(4):
                array[:] = step
                tensor.to(DEVICE)

        assert only(work).repeats == 0


def case_repeats_know_places_devices_and_parts() -> None:
    table = torch.arange(8.0)

    def work() -> None:
        for index in range(4):
            table[index : index + 2].to(DEVICE)  # a different part each time
        for device in (DEVICE, SECOND):
            table.to(device)
        table.to(DEVICE)

    assert [event.repeats for event in seen(work)] == [0, 0, 0, 0]


def case_a_model_that_moves_once_repeats_nothing() -> None:
    event = only(lambda: nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)).to(DEVICE))
    assert facts(event, "calls", "bytes", "repeats") == (4, 160, 0)  # 2 x (16 + 4) floats


def case_views_of_large_memory_are_compared_in_pieces() -> None:
    large = torch.zeros(1 << 20)

    def work() -> None:
        for _ in range(3):
            large.to(DEVICE)

    assert only(work).repeats == 2


def case_results_read_before_anything_waited() -> None:
    tensor = torch.ones(4, device=DEVICE)

    def read() -> None:
        for _ in range(3):
            tensor.to("cpu", non_blocking=True).tolist()

    assert facts(only(read), "calls", "unwaited") == (3, 3)

    def waited() -> None:
        host = tensor.to("cpu", non_blocking=True)
        tensor.sum().item()
        host.tolist()

    assert sum(event.unwaited for event in seen(waited)) == 0

    def blocking() -> None:
        tensor.cpu().tolist()

    assert only(blocking).unwaited == 0


def case_arrays_are_views_until_they_are_gone() -> None:
    tensor = torch.ones(4, device=DEVICE)

    def waited() -> None:
        array = tensor.to("cpu", non_blocking=True).numpy()
        tensor.sum().item()
        array.sum()

    assert sum(event.unwaited for event in seen(waited)) == 0

    def used() -> None:
        for _ in range(3):
            tensor.to("cpu", non_blocking=True).numpy().sum()
        tensor.sum().item()

    assert sum(event.unwaited for event in seen(used)) == 3


def case_no_audit_no_difference() -> None:
    def train() -> list[torch.Tensor]:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1)).to(DEVICE)
        optimizer = torch.optim.Adam(model.parameters())
        for _ in range(3):
            optimizer.zero_grad()
            loss = model(torch.randn(16, 4).to(DEVICE)).pow(2).mean()
            loss.backward()
            optimizer.step()
        return [*(parameter.detach().cpu() for parameter in model.parameters()), loss.detach().cpu(), torch.rand(3)]

    without = train()
    with audited():
        inside = train()
    after = train()
    for first, second, third in zip(without, inside, after, strict=True):
        assert torch.equal(first, second)
        assert torch.equal(first, third)


def case_entries_of_a_sparse_tensor_are_counted_by_the_host() -> None:
    """As on an RTX 4090, where each product with a sparse matrix that is not in order waits for that: see
    docs/confirmed.md."""
    twice = torch.sparse_coo_tensor([[0, 0], [1, 1]], [1.0, 2.0], (2, 2), device=DEVICE)
    once, dense = torch.eye(2, device=DEVICE).to_sparse(), torch.ones(2, 2, device=DEVICE)
    waited = ("sync", "coalesce", True, 1)
    for work in (twice.coalesce, lambda: twice @ dense, lambda: dense @ twice, lambda: dense @ once):
        assert facts(only(work), "kind", "name", "blocking", "calls") == waited
    for work in (once.coalesce, lambda: once @ dense, lambda: twice + twice, lambda: twice.t(), twice.to_dense):
        assert seen(work) == []
    assert (dense @ twice).cpu().tolist() == [[0, 3], [0, 3]]


def case_a_failing_recorder_lets_the_script_run_on() -> None:
    session = Session(Settings(key=backend.KEY, kernels=backend.KERNELS))
    session.start(recorder(session))
    attribution = next(listener for listener in session.listeners if isinstance(listener, Attribution))
    attribution.origin = lambda: 1 / 0  # type: ignore[assignment,method-assign,return-value]  # the bug
    said = io.StringIO()
    with redirect_stderr(said):
        assert torch.ones(4).to(DEVICE).sum().item() == 4
    session.stop()
    assert said.getvalue().count("\n") == 1
    assert "division by zero" in session.failure
    assert torch.ones(4).to(DEVICE).cpu().tolist() == [1, 1, 1, 1]
