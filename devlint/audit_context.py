"""``devlint.audit()``: an audit of some lines of Python, for notebooks and tests."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

from devlint import simulator
from devlint.auditor.judgement.presentation import judged
from devlint.auditor.loop.steps import StepsReached
from devlint.auditor.run import header
from devlint.auditor.running.recording import Plan, Recording, Refused
from devlint.auditor.running.runner import describe
from devlint.auditor.session import Settings
from devlint.config.load import Resolver
from devlint.record import Ending, Record
from devlint.rules.selection import validate


class AuditError(RuntimeError):
    """The audit cannot be made here; the message is one line that says why."""


class Audit:
    """What happens between the host and its accelerator while the block runs.

        with devlint.audit() as run:
            train(model, loader)
        print(run.report())
        assert not run.findings

    ``simulate`` gives this process ``devices`` simulated accelerators, for as long as it lives; there must be no real
    one.  ``steps`` ends the block after so many training steps.  With ``every_step`` each is recorded whole, even where
    that slows a long run down.  The configuration is that of the directory of each file, as for ``devlint check``.

    Exceptions pass through; a device mismatch is explained in the record.  Entering raises an :class:`AuditError` where
    there is no accelerator, or another audit is running.  Afterwards nothing of the audit is left in torch.
    """

    def __init__(
        self, *, simulate: bool = False, devices: int = 1, steps: int | None = None, every_step: bool = False
    ) -> None:
        self._simulate = simulate
        self._devices = devices
        self._steps = steps
        self._every_step = every_step
        self._recording: Recording | None = None
        self._record: Record | None = None

    @property
    def record(self) -> Record:
        """All that was seen, judged; of the latest block, if there were several."""
        if self._record is None:
            raise AuditError("there is no record before the block has ended")
        return self._record

    @property
    def findings(self) -> tuple[dict[str, Any], ...]:
        """What the rules say, as in the JSON of ``devlint check``, with a ``measured`` besides."""
        return self.record.findings or ()

    def report(self, *, color: bool = False, width: int = 100, quiet: bool = False) -> str:
        """The report as text; ``quiet`` leaves all out but what was found."""
        from devlint.report.audit import render

        return "\n".join(render(self.record, color, width, quiet)).rstrip("\n")

    def html(self) -> str:
        """The report as one page for a browser; an :class:`AuditError` where the extra ``html`` is not installed."""
        from devlint.auditor.judgement.export import page_of
        from devlint.report.html.library import MissingLibraryError

        try:
            return page_of(self.record)
        except MissingLibraryError as error:
            raise AuditError(str(error)) from None

    def __enter__(self) -> Audit:
        if Recording.current() is not None:
            raise AuditError("another audit is running in this process")
        self._record = None
        self._check()
        simulated = self._simulate or simulator.installed()
        plan = Plan(
            header(simulated=simulated),
            Settings(steps=self._steps, sampling=not self._every_step),
            simulator=simulator.install if simulated else None,
            devices=self._devices,
        )
        recording = Recording(plan)
        try:
            import torch  # noqa: F401  # it is there when the block begins, so that nothing of it is missed
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise AuditError("torch is not installed for this Python: pip install 'devlint[audit]'") from None
        try:
            recording.begin()
        except Refused as refused:
            recording.end()
            raise AuditError(refused.line.replace("--simulate", "simulate=True")) from None
        self._recording = recording
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        recording, self._recording = self._recording, None
        if recording is None or not recording.is_of_this_process:
            return False
        if isinstance(error, Exception):
            recording.explain(error)
        limited = isinstance(error, StepsReached)
        record = recording.record(Ending(kind="steps") if limited else describe(error))
        recording.end()
        self._record = _by_cell(judged(record, Resolver(validate)))
        return limited

    def _check(self) -> None:
        """Refuse what makes no sense, which the simulated accelerator might take for ever to notice."""
        if not _is_count(self._devices) or self._devices > simulator.MOST_DEVICES:
            most = simulator.MOST_DEVICES
            raise AuditError(f"devices: expected a number from 1 to {most}, not {self._devices!r}")
        if self._steps is not None and not _is_count(self._steps):
            raise AuditError(f"steps: expected a number, 1 or more, not {self._steps!r}")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _by_cell(record: Record) -> Record:
    """The record with each cell that IPython knows called as in its tracebacks, ``In[3]``, not by its file."""
    session = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    name_of = getattr(getattr(session, "compile", None), "format_code_name", lambda _: None)  # since IPython 7.31
    names = {file: f"<{found[1]}>" for file in record.sources if (found := name_of(file))}
    if not names:
        return record
    import msgspec

    renamed: Record = msgspec.convert(_renamed(msgspec.to_builtins(record), names), Record)
    return renamed


def _renamed(value: Any, names: dict[str, str]) -> Any:
    """A value in which every text that is the name of a file is its other name; of code and figures nothing changes."""
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, dict):
        return {names.get(key, key): _renamed(item, names) for key, item in value.items()}
    return [_renamed(item, names) for item in value] if isinstance(value, list | tuple) else value
