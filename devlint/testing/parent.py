"""Tests that run in another process: asked for one by one, their reports shown as if they had run here."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from typing import Any

import pytest

from devlint._about import PACKAGE
from devlint.simulator import MOST_DEVICES
from devlint.testing.marks import NAME, concerns

_PATIENCE = 30.0
"""Seconds that the other process may take to end, for the fixtures of its session."""


class Simulation:
    """The other process, started for the first test that needs it, and again if a test has ended it."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._process: subprocess.Popen[bytes] | None = None

    def protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        """What pytest does with a test, but that it runs elsewhere."""
        hook = item.ihook
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        reports = self._run(item)
        for report in reports:
            hook.pytest_runtest_logreport(report=report)
        # what the tests before had in common with this one, and the next one has not, is torn down here
        call = pytest.CallInfo.from_call(lambda: item.session._setupstate.teardown_exact(nextitem), "teardown")
        if call.excinfo is not None:
            hook.pytest_runtest_logreport(report=pytest.TestReport.from_item_and_call(item, call))
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    def close(self) -> None:
        """End the other process."""
        process, self._process = self._process, None
        if process is not None:
            _ended(process)

    def _run(self, item: pytest.Item) -> list[pytest.TestReport]:
        try:
            process = self._process or self._start(item.session)
            self._send(item.nodeid)
            assert process.stdout is not None
            found: list[dict[str, Any]] | str = pickle.load(process.stdout)
        except (OSError, EOFError, pickle.UnpicklingError):
            found = self._died()
        if isinstance(found, str):
            return [pytest.TestReport(item.nodeid, item.location, {}, "failed", found, "call")]
        hook = self._config.hook
        return [hook.pytest_report_from_serializable(config=self._config, data=data) for data in found]

    def _start(self, session: pytest.Session) -> subprocess.Popen[bytes]:
        config = self._config
        files = dict.fromkeys(str(item.path) for item in session.items if concerns(item))
        arguments = [str(argument) for argument in config.invocation_params.args]
        # devlint itself is to be found even if this process was told of it in some other way
        path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH", ""), os.path.dirname(PACKAGE)]))
        process = subprocess.Popen(
            [sys.executable, "-m", "devlint.testing.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=config.invocation_params.dir,
            # a simulated accelerator and a real one cannot live together
            env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": path},
        )
        self._process = process
        given = {"arguments": arguments, "files": list(files), "path": sys.path, "devices": _devices(session)}
        self._send(given)
        return process

    def _send(self, value: object) -> None:
        stream = self._process.stdin if self._process is not None else None
        assert stream is not None
        pickle.dump(value, stream)
        stream.flush()

    def _died(self) -> str:
        process, self._process = self._process, None
        if process is None:
            return "device_audit: the process with the simulated accelerator could not be started"
        return f"device_audit: the process with the simulated accelerator ended with code {_ended(process)}"


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


def _devices(session: pytest.Session) -> int:
    """The most devices that a test asks for and can have: there cannot be more of them later."""
    asked = [marker.kwargs.get("devices", 1) for item in session.items for marker in item.iter_markers(NAME)]
    return max((number for number in asked if isinstance(number, int) and 1 <= number <= MOST_DEVICES), default=1)
