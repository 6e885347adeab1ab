"""Why nothing was shown, in one line."""

from __future__ import annotations

import os

from devlint.prove.claim import Claim
from devlint.prove.running.trial import SCRIPT, TooLongError, Trial

_KINDS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("ModuleNotFoundError",), "needs a module that is not installed"),
    (("FileNotFoundError", "NotADirectoryError", "IsADirectoryError"), "needs a file or a data set on disk"),
    (("PermissionError",), "does what is not allowed here"),
    (("ConnectionError", "URLError", "HTTPError", "LocalEntryNotFoundError", "OfflineModeIsEnabled"),
     "needs the network"),
    (("SystemExit",), "ends the program, as where a command line is read"),
    (("TooLongError",), "takes too long"),
)  # fmt: skip


def reason(claim: Claim, best: Trial | None, runs: int, reached: int) -> tuple[str, str]:
    """A verdict, ``refuted`` or ``not shown``, and why."""
    row = claim.span[0]
    if reached:
        times = "a call reached it" if reached == 1 else f"{reached} calls reached it"
        return "refuted", f"{times}, with all that they were given in one place, and nothing of it was to be seen"
    if best is not None and best.error is None and best.reached(claim.rows):
        harm = ", ".join(str(rows.first) for rows in claim.related if rows.file == claim.file) or "elsewhere"
        return "not shown", f"line {row} is reached, but what it does does not come to line {harm} in {runs} calls"
    if best is None or best.error is None:
        return "not shown", f"line {row} is not reached by any of {runs} calls"
    told = stopped(claim, best)
    begins = next((words for names, words in _KINDS if _is(best.error, names)), "")
    if begins:
        return "not shown", f"{begins}: {told}"
    if isinstance(best.error, NotImplementedError) and "does not simulate" in str(best.error):
        return "not shown", f"it is not simulated: {told}"
    if best.reached(claim.rows):
        return "not shown", f"no arguments are found with which line {row} does what it should, in {runs} calls: {told}"
    return "not shown", f"no arguments are found with which line {row} is reached, in {runs} calls: {told}"


def stopped(claim: Claim, trial: Trial) -> str:
    """What stopped a run, and where."""
    step = trial.inner(claim.file) or next((step for step in reversed(trial.steps) if step.file != SCRIPT), None)
    said = trial.said if len(trial.said) <= 160 else f"{trial.said[:157]}..."
    if isinstance(trial.error, TooLongError):
        said = str(trial.error)
    if step is None:
        return said
    name = os.path.basename(step.file)
    return f"{said} at line {step.first}" if step.file == claim.file else f"{said} at {name}:{step.first}"


def _is(error: BaseException, names: tuple[str, ...]) -> bool:
    kinds = {kind.__name__ for kind in type(error).__mro__}
    return any(name in kinds for name in names)
