"""What the rules of the family `portability` claim: most of it shows on a machine without CUDA."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from devlint.auditor.patches import Patches
from devlint.finding import Finding, Severity
from tests.running.claims import Claim, Unobservable, itself
from tests.running.observed import Run
from tests.running.words import checkpoint, saved_on_cuda

NO_CUDA = re.compile(
    r"Torch not compiled with CUDA enabled"
    r"|Cannot access accelerator device when none is available"
    r"|Tried to instantiate dummy base class"
    r"|Need to provide pin_memory allocator to use pin memory"
    r"|Cannot initialize CUDA without ATen_cuda library|PyTorch was compiled without CUDA support"
    r"|Found no NVIDIA driver"
    r"|not linked with support for cuda|Could not run .* with arguments from the 'CUDA' backend"
    r"|module 'torch\._C' has no attribute '_cuda"
    r"|Invalid device, must be cuda device|No CUDA GPUs are available|CUDA is not available"
    r"|type torch\.cuda\.\w+ not available"
)
"""What torch says where it has no CUDA."""


def wants_cuda(run: Run) -> bool:
    """Whether the run died for want of CUDA."""
    return run.failure is not None and bool(NO_CUDA.search(run.failure.text))


def _never_reached(finding: Finding, run: Run) -> bool:
    """Whether the case ran to its end without coming there: what is there is for CUDA alone."""
    inside = run.case.rows[0] <= finding.span.row <= run.case.rows[1]
    return inside and not wants_cuda(run) and not run.seen(run.node(finding))


def needs_cuda(finding: Finding, run: Run) -> str | None:
    """It raises there; or, as a hint, only machines with CUDA come there."""
    if wants_cuda(run) and run.failure and run.failure.is_at(finding):
        return None
    if finding.severity is Severity.INFO and _never_reached(finding, run):
        return None
    return f"without CUDA: {run.failure.text if run.failure else 'nothing is raised'}"


def _names_cuda(finding: Finding, run: Run) -> str | None:
    """It raises where the name is used, torch warns that it does nothing, or only machines with CUDA come there."""
    inside = run.case.rows[0] <= finding.span.row <= run.case.rows[1]
    if inside and wants_cuda(run):
        return None
    rows = range(finding.span.row, finding.span.end_row + 1)
    if any(row in rows and "CUDA is not available" in text for row, text in run.warned):
        return None
    if finding.severity is Severity.INFO and _never_reached(finding, run):
        return None
    values = run.seen(run.node(finding))
    if values and all(_fails_to_hold(value) for value in values):
        return None
    return f"without CUDA: {run.failure.text if run.failure else 'nothing is raised'}"


def _fails_to_hold(device: Any) -> bool:
    """Whether no tensor can be made on a device, for want of CUDA."""
    try:
        torch.zeros(1, device=device)
    except (AssertionError, RuntimeError) as error:
        return bool(NO_CUDA.search(str(error)))
    return False


def _moves_nothing(finding: Finding, run: Run) -> str | None:
    """It is called without CUDA, and a module without any part comes back."""
    modules = run.seen(run.node(finding))
    parts = [part for module in modules for part in (*module.parameters(), *module.buffers())]
    return None if modules and not parts else f"{len(modules)} modules, with {len(parts)} parts"


@contextmanager
def _one_accelerator(run: Run) -> Iterator[None]:
    """A machine with one accelerator."""
    from devlint.simulator import devices

    count = devices.count()
    devices.set_count(1 if run.fixture.code == "DVL603" else count)
    try:
        yield
    finally:
        devices.set_count(count)


def _second(finding: Finding, run: Run) -> str | None:
    """With one accelerator, the second one is missed; with two, it is used."""
    if run.fixture.code != "DVL603":
        wrapped = any(1 in (wrapper.device_ids or ()) for wrapper in run.wrappers(finding))
        used = wrapped or any("cuda:1" in (event.source, event.target) for event in run.events(finding))
        return None if used else "the second accelerator is not used"
    text = run.failure.text if run.failure else "nothing was raised"
    missed = re.search(r"invalid device ordinal|[Ii]nvalid device id|device_ids|peer|list index out of range", text)
    there = run.failure is not None and (run.failure.is_at(finding) or not run.failure.places)
    return None if missed and there else text


def _attached(finding: Finding, run: Run) -> str | None:
    """What was saved on a machine with CUDA cannot be loaded."""
    text = run.failure.text if run.failure else "nothing was raised"
    there = run.failure is not None and run.failure.is_at(finding)
    return None if there and "Attempting to deserialize object on a CUDA device" in text else text


@contextmanager
def _files_of_cuda(run: Run) -> Iterator[None]:
    """What is saved was on CUDA, and there is such a file, which scripts load."""
    checkpoint()
    with saved_on_cuda():
        yield


@contextmanager
def _another_accelerator(run: Run) -> Iterator[None]:
    """A machine with an accelerator that is not CUDA, as far as torch tells of it."""
    patches = Patches()
    accelerator: Any = torch.accelerator
    patches.set(accelerator, "is_available", lambda: True)
    patches.set(accelerator, "current_accelerator", lambda check_available=False: torch.device("mps"))
    try:
        yield
    finally:
        patches.undo()


def _left_unused(finding: Finding, run: Run) -> str | None:
    """The choice falls on the CPU."""
    values = run.seen(run.node(finding))
    return None if values and all("cpu" in str(value) for value in values) else f"chosen: {values}"


def _answer(function: Any) -> Any:
    """What a function of `torch.cuda` says where there is no CUDA; nothing if it raises."""
    for arguments in ((), (0,)):
        try:
            return function(*arguments)
        except TypeError:
            continue
        except (AssertionError, RuntimeError):
            return None
    return None


def _serves_cuda(finding: Finding, run: Run) -> str | None:
    """The call raises there, or says that there is nothing, or a question keeps the code from it."""
    if wants_cuda(run) and run.failure and run.failure.is_at(finding):
        return None
    values = [_answer(value) if callable(value) else value for value in run.seen(run.node(finding))]
    nothing = all(not value or str(value) == "cpu" for value in values)
    inside = run.case.rows[0] <= finding.span.row <= run.case.rows[1]
    if inside and nothing:
        return None
    return f"{values}, {run.failure and run.failure.text}"


def _may_be_none(finding: Finding, run: Run) -> str | None:
    """There is no accelerator: the call returns `None`, or its attribute is asked for and raises."""
    values = run.seen(run.node(finding))
    if values and all(value is None for value in values):
        return None
    failed = run.failure is not None and run.failure.is_at(finding) and "NoneType" in run.failure.text
    return None if failed else f"{values}, {run.failure and run.failure.text}"


@contextmanager
def _visible(run: Run) -> Iterator[None]:
    """Note in ``run.hidden`` how many devices the driver had found when the variable was set, -1 for none."""
    from devlint.simulator import devices

    environment: Any = os.environ
    kind = type(environment)
    patches = Patches()
    set_item: Any = kind.__setitem__

    def noting(self: Any, key: str, value: str) -> None:
        if key.endswith("VISIBLE_DEVICES"):
            run.hidden.append((run.row(), bool(devices._found)))
        set_item(self, key, value)

    patches.set(kind, "__setitem__", noting)
    try:
        yield
    finally:
        patches.undo()


def _too_late(finding: Finding, run: Run) -> str | None:
    """The driver had counted its devices before, or, as a hint, had not yet: torch was imported."""
    rows = range(finding.span.row, finding.span.end_row + 1)
    late = [known for row, known in run.hidden if row in rows]
    wanted = finding.severity is not Severity.INFO
    return None if late and all(known is wanted for known in late) else f"set there: {run.hidden}"


CLAIMS: dict[str, Claim | Unobservable] = {
    "DVL601": Claim(
        needs_cuda,
        watches=itself,
        machine="host",
        raises=True,
        others={"moves nothing": Claim(_moves_nothing, watches=itself, machine="host")},
    ),
    "DVL602": Claim(_names_cuda, watches=itself, machine="host", raises=True),
    "DVL603": Claim(_second, during=_one_accelerator, raises=True),
    "DVL604": Claim(_attached, machine="host", raises=True, during=_files_of_cuda),
    "DVL605": Claim(needs_cuda, watches=itself, machine="host", raises=True),
    "DVL606": Claim(_left_unused, watches=itself, machine="host", during=_another_accelerator),
    "DVL607": Claim(_may_be_none, watches=itself, machine="host", raises=True),
    "DVL608": Claim(
        _too_late, lambda run: [f"set too late in row {row}" for row, late in run.hidden if late], during=_visible
    ),
    "DVL609": Claim(_serves_cuda, watches=itself, machine="host", raises=True),
}
