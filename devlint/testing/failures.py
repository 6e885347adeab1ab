"""Why a test failed, as far as devices have to do with it; and whether it fails without an accelerator, too."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Literal, TypedDict

import msgspec
import pytest

from devlint.auditor.frames import Frames
from devlint.record import Mismatch
from devlint.report.terminal import one_line
from devlint.testing.parent import Elsewhere, ProcessEndedError

_SIMULATOR = "devlint.simulator."
_NOT_SIMULATED = "devlint does not simulate"
_REFUSED = re.compile(
    r"CUDA error: |CUDA out of memory|\"[\w.]+\" not implemented for '|getCudnnDataType|.*dtypes on CUDA"
    r"|Could not run '.*' with arguments from the '\w*CUDA' backend|.* does not have a deterministic implementation"
)
"""What the simulator says of computations that CUDA refuses; what it passes on is any mistake of the caller."""
_WANTING = re.compile(
    r"Torch not compiled with CUDA|not linked with support for (?:cuda|CUDA)|No CUDA GPUs are available"
    r"|no NVIDIA driver|torch\.cuda\.is_available\(\) is False|from the 'CUDA' backend|ATen_cuda library"
    r"|when none is available|Tried to instantiate dummy base class|has no attribute '_cuda_"
    r"|False = <(?:built-in )?function is_available|(?i:cuda (?:is )?(?:not available|unavailable))"
)
"""What is said by torch, and by others, where there is no CUDA."""
NEEDS_ONE = "devlint_needs_an_accelerator"
"""The attribute of a report, where there is none, of a test that failed for want of one."""
OnTheHost = Literal["passes", "needs one", "fails", "does not run"]
"""What a test does where there is no accelerator."""


class Told(TypedDict):
    """What a report carries of an exception, in words that every process understands.

    ``error`` is its text on one line; ``mismatch`` is the JSON of a :class:`Mismatch`; ``elsewhere`` is what another
    process said of one; ``missing`` is what devlint says it does not simulate; ``refused`` is what CUDA refuses, too,
    and ``file`` and ``line`` are where.  What does not apply is empty.
    """

    error: str
    mismatch: str
    elsewhere: str
    missing: str
    refused: str
    file: str
    line: int


def unknown(error: str) -> Told:
    """What is told of a test whose exception nobody could look at, such as that of a worker which died."""
    return Told(error=error, mismatch="", elsewhere="", missing="", refused="", file="", line=0)


def told(error: BaseException, frames: Frames) -> Told:
    """What an exception has to do with devices; the variables in its traceback still live."""
    from devlint.auditor.explanation.explain import examine
    from devlint.auditor.explanation.origin import chain, of_another_process
    from devlint.auditor.explanation.trail import follow

    why = unknown(_first_line(error))
    try:
        found = examine(error, error.__traceback__, frames)
        if found is not None:
            return {**why, "mismatch": msgspec.json.encode(found.mismatch).decode()}
        why["elsewhere"] = one_line(of_another_process(error, frames))
        missing = next((str(one) for one in chain(error) if _NOT_SIMULATED in str(one)), "")
        why["missing"] = one_line(missing[missing.find(_NOT_SIMULATED) :])
        refused = next(filter(_is_refused, chain(error)), None)
        stop = follow(refused.__traceback__, frames).project if refused is not None else None
        if refused is not None:
            why["refused"] = _first_line(refused)
        if stop is not None:
            place = stop.place()
            why["file"], why["line"] = place.file, place.line
    except Exception:  # the test has failed of something else, and is to be shown
        return why
    return why


def _first_line(error: BaseException) -> str:
    return one_line(f"{type(error).__name__}: {error}".partition("\n")[0])


def _is_refused(error: BaseException) -> bool:
    """Whether CUDA refuses it as the simulator does, which has raised it itself."""
    import torch

    from devlint.auditor.explanation.origin import raised_in

    if isinstance(error, (torch.OutOfMemoryError, getattr(torch, "AcceleratorError", torch.OutOfMemoryError))):
        return True
    frame = raised_in(error)
    raiser = frame.f_globals.get("__name__", "") if frame is not None else ""
    return raiser.startswith(_SIMULATOR) and _REFUSED.match(str(error)) is not None


def wants_an_accelerator(error: BaseException) -> bool:
    """Whether, where there is no accelerator, a test has failed of that."""
    from devlint.auditor.explanation.origin import chain

    return any(_WANTING.search(str(one)) for one in chain(error))


def end_in_torch(error: BaseException) -> None:
    """Let the traceback end before the simulator, as it does where a GPU's kernel failed."""
    entry, last = error.__traceback__, None
    while entry is not None:
        of_simulator = entry.tb_frame.f_globals.get("__name__", "").startswith(_SIMULATOR)
        if of_simulator and last is not None and _is_internal(entry):
            last.tb_next = None
            return
        entry, last = entry.tb_next, entry


def _is_internal(entry: TracebackType | None) -> bool:
    """Whether only the simulator and torch are from here on, which computes for it on the host."""
    while entry is not None:
        if not entry.tb_frame.f_globals.get("__name__", "").startswith((_SIMULATOR, "torch.")):
            return False
        entry = entry.tb_next
    return True


def met(failed: Iterable[tuple[str, Told]]) -> Iterator[tuple[Mismatch, list[str]]]:
    """Each device error once, with the tests that failed of it, those of most tests first."""
    groups: dict[tuple[object, ...], tuple[Mismatch, list[str]]] = {}
    for name, why in failed:
        if why["mismatch"]:
            mismatch = msgspec.json.decode(why["mismatch"], type=Mismatch)
            parties = tuple((party.text, party.device) for party in mismatch.parties)
            key = (mismatch.frame, mismatch.via, mismatch.module, parties)
            groups.setdefault(key, (mismatch, []))[1].append(name)
    yield from sorted(groups.values(), key=lambda group: -len(group[1]))


def without_accelerator(config: pytest.Config, names: Iterable[str]) -> dict[str, OnTheHost]:
    """Run tests again in a process that has no accelerator, one by one."""
    names = list(names)
    files = (str(config.rootpath / name.partition("::")[0]) for name in names)
    elsewhere = Elsewhere(config, files, devices=0)
    try:
        return {name: _alone(elsewhere, name) for name in names}
    finally:
        elsewhere.close()


def _alone(elsewhere: Elsewhere, name: str) -> OnTheHost:
    try:
        reports = elsewhere.run(name)
    except ProcessEndedError:
        return "fails"
    if isinstance(reports, str):
        return "does not run"
    failed = [report for report in reports if report.failed]
    if failed:
        return "needs one" if all(NEEDS_ONE in vars(report) for report in failed) else "fails"
    return "passes" if any(report.when == "call" and report.passed for report in reports) else "does not run"
