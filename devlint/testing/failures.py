"""Why a test failed, as far as devices have to do with it; and whether it fails without an accelerator, too."""

from __future__ import annotations

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
OnTheHost = Literal["passes", "fails", "does not run"]
"""What a test does where there is no accelerator."""


class Told(TypedDict):
    """What a report carries of an exception, in words that every process understands.

    ``error`` is its text on one line; ``mismatch`` is the JSON of a :class:`Mismatch`; ``missing`` is what devlint says
    it does not simulate.  What does not apply is empty.
    """

    error: str
    mismatch: str
    missing: str


def told(error: BaseException, frames: Frames) -> Told:
    """What an exception has to do with devices; the variables in its traceback still live."""
    from devlint.auditor.explanation.explain import chain, examine

    try:
        found = examine(error, error.__traceback__, frames)
    except Exception:  # the test has failed of something else, and is to be shown
        found = None
    missing = next((str(one) for one in chain(error) if _NOT_SIMULATED in str(one)), "")
    text = one_line(f"{type(error).__name__}: {error}".partition("\n")[0])
    mismatch = msgspec.json.encode(found.mismatch).decode() if found is not None else ""
    return Told(error=text, mismatch=mismatch, missing=one_line(missing[missing.find(_NOT_SIMULATED) :]))


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
    if any(report.failed for report in reports):
        return "fails"
    return "passes" if any(report.when == "call" and report.passed for report in reports) else "does not run"
