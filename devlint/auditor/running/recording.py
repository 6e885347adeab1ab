"""The audit of one process from the import of torch to its end, and the file that keeps what it saw."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from devlint.auditor.running import ranks, storage
from devlint.auditor.running.console import say
from devlint.auditor.running.import_hook import when_imported
from devlint.auditor.session import Backend, Listener, Session, Settings
from devlint.record import Ending, Mismatch, Process, Record

SNAPSHOT_INTERVAL = 5.0
"""Seconds from one snapshot to the next; more, if they take long."""
_MOST_SHARE = 0.02
"""Snapshots must not take more of the run's time than this."""

Role = Literal["main", "rank", "child", "loader worker"]
Simulator = Callable[[int], Backend]
"""Puts so many simulated devices in the place of real ones; it is pickled, and so a function of a module."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What all processes of a run have in common; it is sent to those that are spawned.

    ``directory`` is where their records go, empty if they cannot be kept.  ``header`` is a record without processes.
    ``simulator`` makes so many ``devices``, where a fork has not brought them along; without it they are real.
    """

    header: Record
    settings: Settings = field(default_factory=Settings)
    directory: str = ""
    simulator: Simulator | None = None
    devices: int = 1


class Refused(SystemExit):  # it ends the script; nobody is to take it for an error and go on
    """The run cannot be audited as asked: ``line`` says why, and the script ends where it imports torch."""

    def __init__(self, line: str) -> None:
        super().__init__(2)
        self.line = line


_current: list[Recording] = []
"""The one of this process, if any; a forked process finds its parent's here."""


class Recording:
    """Starts when torch is imported, writes snapshots, and tells at the end what this process saw.

    ``file`` is the name of its file in the plan's directory; ``output`` is another one, empty for none.
    """

    def __init__(
        self, plan: Plan, file: str = "", role: Role = "main", rank: ranks.Rank | None = None, output: str = ""
    ) -> None:
        self.plan = plan
        self.session: Session | None = None
        self.refused: Refused | None = None
        self._paths = [os.path.join(plan.directory, file)] if plan.directory else []
        if output:
            self._paths.append(os.path.abspath(output))  # the script may go elsewhere
        self.role: Role = role
        self._rank = rank
        self._group = (rank.number, rank.size) if rank is not None else None
        self._pid = os.getpid()
        self._started = time.perf_counter()
        self._due = 0.0
        self._mismatches: list[Mismatch] = []
        self._cancel: Callable[[], None] = lambda: None

    @staticmethod
    def current() -> Recording | None:
        """The one that this process has begun and not ended."""
        return next((recording for recording in _current if recording.is_of_this_process), None)

    @property
    def is_of_this_process(self) -> bool:
        """Whether this process began it, rather than one that was forked since."""
        return self._pid == os.getpid()

    def begin(self) -> None:
        """Wait for torch to be imported."""
        inherited, _current[:] = _current[:], [self]
        for recording in inherited:  # by a fork: its hooks would be found where the original functions are expected
            recording.end()
        self._cancel = when_imported("torch", self._torch_imported)

    def explain(self, error: BaseException) -> None:
        """Look for the cause of a device mismatch that ended something; the variables in its traceback still live."""
        if self.session is None or isinstance(error, SystemExit | KeyboardInterrupt):
            return
        found = self.session.signals.explain(error)
        if found is not None:
            self._mismatches.append(found)

    def process(self, ending: Ending) -> Process:
        """What this process saw so far."""
        self._find_rank()
        number, size = self._group or (None, None)
        process = Process(pid=self._pid, ending=ending) if self.session is None else self.session.process(ending)
        host = socket.gethostname() if self._rank is not None else ""
        return replace(
            process,
            role=self.role,
            rank=number,
            local_rank=self._rank.local if self._rank is not None else None,
            world_size=size,
            seconds=time.perf_counter() - self._started,
            device=process.device or _device(process),
            environment=replace(process.environment, host=process.environment.host or host),
            mismatches=(*filter(self._is_news, process.mismatches), *self._mismatches),
        )

    def _is_news(self, mismatch: Mismatch) -> bool:
        """Whether it is not the very one that was explained, as it was seen before it was raised."""
        explained = (found.frame for found in self._mismatches)
        return bool(mismatch.error) or mismatch.calls > 1 or mismatch.frame not in explained

    def record(self, ending: Ending, complete: bool = True) -> Record:
        """The same as a record of its own."""
        return replace(self.plan.header, complete=complete, processes=(self.process(ending),))

    def save(self, record: Record) -> None:
        """Keep the record where it is to be kept; what fails is said once."""
        for path in list(self._paths):
            try:
                storage.write(record, path)
            except OSError as error:
                self._paths.remove(path)
                say("warning", f"{path}: the record of the audit cannot be kept: {error.strerror}")

    def snapshot(self) -> None:
        """Keep what there is, if the last time is long enough ago."""
        self._find_rank()  # which may be known only for as long as the loop runs
        if time.monotonic() < self._due:
            return
        started = time.monotonic()
        self.save(self.record(Ending(), complete=False))
        now = time.monotonic()
        self._due = now + max(SNAPSHOT_INTERVAL, (now - started) / _MOST_SHARE)

    def end(self) -> None:
        """Take everything back; to be called when the process has been described for the last time."""
        self._cancel()
        if self.session is not None:
            self.session.stop()
        if self in _current:
            _current.remove(self)

    def _torch_imported(self) -> None:
        if not self.is_of_this_process:
            return
        try:
            self._start()
        except Refused as refused:
            self.refused = refused
            if self.role in ("child", "loader worker"):
                say("error", refused.line)
            raise
        except Exception as error:
            (self.session or Session(Settings())).fail(error)

    def _start(self) -> None:
        settings = self.plan.settings
        if self.plan.simulator is not None:
            try:
                key, kernels = self.plan.simulator(self.plan.devices)
            except Exception as error:
                raise Refused(f"the simulated accelerator cannot be used: {error}") from error
            settings = replace(settings, key=key, simulated=True, kernels=kernels)
        elif self.role in ("main", "rank") and (line := missing_accelerator()):
            raise Refused(line)
        from devlint.auditor.listeners import listeners

        self.session = Session(settings)
        self.session.start([*listeners(self.session), _Snapshots(self)])

    def _find_rank(self) -> None:
        self._group = self._group or ranks.of_group()


class _Snapshots(Listener):
    """Keeps what was seen so far whenever a step has ended."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def on_step_end(self) -> None:
        """Keep it, if it is time."""
        self._recording.snapshot()


def missing_accelerator() -> str:
    """Why nothing can be audited here, empty if there may be an accelerator.

    Asks the build and the driver's management library, since asking torch's runtime would initialise the device: the
    script may still want to choose among several, or to fork.
    """
    import torch

    from devlint.auditor.recorder.backends import find_key

    key = find_key()
    hint = "use --simulate to audit with a simulated one"
    if not key:
        return f"this torch ({torch.__version__}) was built without support for any accelerator: {hint}"
    if key == "MPS" and not torch.backends.mps.is_available():
        return f"there is no accelerator here: {hint}"
    if key == "CUDA" and not _may_have_cuda():
        return f"there is no accelerator here that torch can use: {hint}"
    return ""


_NODES = ("/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg", "/dev/nvhost-ctrl", "/dev/nvgpu", "/dev/kfd")
"""What a Linux with a driver for CUDA or ROCm has, the ones of WSL and Jetson among them."""


def _may_have_cuda() -> bool:
    import torch

    amd = getattr(torch.version, "hip", None) is not None
    count = getattr(torch.cuda, "_device_count_amdsmi" if amd else "_device_count_nvml", lambda: -1)()
    if count >= 0:
        return bool(count)
    return not sys.platform.startswith("linux") or any(map(os.path.exists, _NODES))


def _device(process: Process) -> str:
    """The accelerator that most copies went to, or the one in use if there were none."""
    copies: Counter[str] = Counter()
    for event in process.events:
        for device in (event.source, event.target):
            if event.kind == "copy" and device and device != "cpu":
                copies[device] += event.calls
    if copies:
        return copies.most_common(1)[0][0]
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    return f"cuda:{cuda.current_device()}" if cuda is not None and cuda.is_initialized() else ""
