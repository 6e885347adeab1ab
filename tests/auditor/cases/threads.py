"""What happens in threads that the script did not start: with one device, autograd has a thread for it."""

from __future__ import annotations

import threading

import torch
from torch.utils.data import DataLoader, TensorDataset

from tests.auditor.cases.recorder import facts, lines, seen

DEVICES = 1
DEVICE = torch.device("cuda", 0)


def case_the_thread_of_autograd_is_blamed_on_the_forward_line() -> None:
    weight = torch.ones(4, 4, requires_grad=True)

    def work() -> None:
        before = threading.enumerate()
        weight.to(DEVICE).sum().backward()  # and back
        assert threading.enumerate() == before

    (event,) = (event for event in seen(work) if event.backward)
    assert facts(event, "source", "target", "bytes", "threads") == (str(DEVICE), "cpu", 64, ("autograd",))
    assert event.frame is not None
    assert [event.frame.line] == lines(case_the_thread_of_autograd_is_blamed_on_the_forward_line, "# and back\n")


def case_an_unknown_forward_is_blamed_on_the_line_of_the_backward() -> None:
    weight = torch.ones(4, 4, requires_grad=True)
    total = weight.to(DEVICE).sum()
    (event,) = seen(lambda: total.backward())
    assert facts(event, "backward", "threads") == (True, ("autograd",))
    assert event.frame is not None
    assert [event.frame.line] == lines(
        case_an_unknown_forward_is_blamed_on_the_line_of_the_backward, "lambda: total.backward())\n"
    )


def case_the_loader_pins_in_a_thread_of_its_own() -> None:
    loader = DataLoader(TensorDataset(torch.ones(8, 2)), 4, num_workers=1, pin_memory=True)

    def work() -> None:
        for (batch,) in loader:
            batch.to(DEVICE, non_blocking=True)

    found = {event.kind: event for event in seen(work)}
    # two batches of 4 x 2 floats, pinned in another thread and copied in this one
    assert facts(found["pin"], "calls", "bytes") == (2, 64)
    assert facts(found["copy"], "calls", "bytes", "pinned", "threads") == (2, 64, True, ("MainThread",))
    assert all("pin_memory" in name for name in found["pin"].threads)
