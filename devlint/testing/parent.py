"""Tests that run in another process: asked for one by one, their reports shown as if they had run here."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

import pytest

from devlint._about import PACKAGE
from devlint.simulator import MOST_DEVICES
from devlint.simulator.children import unfollowed
from devlint.testing.marks import NAME, concerns

_PATIENCE = 30.0
"""Seconds that the other process may take to end, for the fixtures of its session."""


class ProcessEndedError(Exception):
    """A test has ended the process that ran it; the text says so."""


class Elsewhere:
    """The other process, which collects some files; started when it is needed, and again if a test has ended it.

    It has so many simulated ``devices``; without any it runs tests on the CPU, where no accelerator is.
    """

    def __init__(self, config: pytest.Config, files: Iterable[str], devices: int) -> None:
        self._config = config
        self._files = list(dict.fromkeys(files))
        self._devices = devices
        self._process: subprocess.Popen[bytes] | None = None

    def close(self) -> None:
        """End the other process."""
        process, self._process = self._process, None
        if process is not None:
            _ended(process)

    def run(self, name: str) -> list[pytest.TestReport] | str:
        """The reports of a test, or why there are none; raises :class:`ProcessEndedError` if it ends the process."""
        try:
            process = self._process or self._start()
            self._send(name)
            assert process.stdout is not None
            found: list[dict[str, Any]] | str = pickle.load(process.stdout)
        except (OSError, EOFError, pickle.UnpicklingError):
            raise ProcessEndedError(self._died()) from None
        if isinstance(found, str):
            return found
        hook = self._config.hook
        return [hook.pytest_report_from_serializable(config=self._config, data=data) for data in found]

    def _start(self) -> subprocess.Popen[bytes]:
        config = self._config
        arguments = [str(argument) for argument in config.invocation_params.args]
        # devlint itself is to be found even if this process was told of it in some other way
        environment = unfollowed(os.environ)
        path = os.pathsep.join(filter(None, [environment.get("PYTHONPATH", ""), os.path.dirname(PACKAGE)]))
        process = subprocess.Popen(
            [sys.executable, "-m", "devlint.testing.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=config.invocation_params.dir,
            # a simulated accelerator and a real one cannot live together
            env={**environment, "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": path},
        )
        self._process = process
        given = {"arguments": arguments, "files": self._files, "path": sys.path, "devices": self._devices}
        self._send(given)
        return process

    def _send(self, value: object) -> None:
        stream = self._process.stdin if self._process is not None else None
        assert stream is not None
        pickle.dump(value, stream)
        stream.flush()

    def _died(self) -> str:
        process, self._process = self._process, None
        kind = "with the simulated accelerator" if self._devices else "without an accelerator"
        if process is None:
            return f"the process {kind} could not be started"
        return f"the process {kind} ended with code {_ended(process)}"


class Simulation:
    """The process with a simulated accelerator for the tests that need one, where the others have none."""

    def __init__(self, session: pytest.Session) -> None:
        files = (str(item.path) for item in session.items if concerns(item))
        self._elsewhere = Elsewhere(session.config, files, _devices(session))

    def protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        """What pytest does with a test, but that it runs elsewhere."""
        hook = item.ihook
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in self._run(item):
            hook.pytest_runtest_logreport(report=report)
        # what the tests before had in common with this one, and the next one has not, is torn down here
        call = pytest.CallInfo.from_call(lambda: item.session._setupstate.teardown_exact(nextitem), "teardown")
        if call.excinfo is not None:
            hook.pytest_runtest_logreport(report=pytest.TestReport.from_item_and_call(item, call))
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    def close(self) -> None:
        """End the process."""
        self._elsewhere.close()

    def _run(self, item: pytest.Item) -> list[pytest.TestReport]:
        try:
            found = self._elsewhere.run(item.nodeid)
        except ProcessEndedError as error:
            found = str(error)
        if isinstance(found, str):
            return [pytest.TestReport(item.nodeid, item.location, {}, "failed", f"{NAME}: {found}", "call")]
        return found


def _ended(process: subprocess.Popen[bytes]) -> int:
    """With which code the process ends, now that it is asked for nothing more."""
    for stream in (process.stdin, process.stdout):
        try:
            if stream is not None:
                stream.close()
        except OSError:  # it has ended already, and never read what it was told
            pass
    try:
        return process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def devices_of(item: pytest.Item) -> int:
    """The most devices that the markers of a test ask for and can have."""
    asked = [marker.kwargs.get("devices", 1) for marker in item.iter_markers(NAME)]
    return max((number for number in asked if isinstance(number, int) and 1 <= number <= MOST_DEVICES), default=1)


def _devices(session: pytest.Session) -> int:
    """The most devices that any test needs: there cannot be more of them later."""
    return max(map(devices_of, session.items), default=1)
