"""A suite on a simulated accelerator: what each process of pytest does from its start to its last test."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from devlint import simulator
from devlint.auditor.frames import Frames
from devlint.auditor.running.import_hook import when_imported
from devlint.auditor.running.recording import Refused
from devlint.config.load import load_directory
from devlint.config.schema import ConfigError
from devlint.config.sizes import size_of
from devlint.config.suite import Suite
from devlint.report.wording import plural
from devlint.simulator import children
from devlint.simulator.masquerade.card import MEMORY_VARIABLE
from devlint.testing.auditing import hide_the_simulator
from devlint.testing.counting import Recorder, Row
from devlint.testing.failures import OnTheHost, Told, end_in_torch, told, unknown, without_accelerator
from devlint.testing.marks import SIMULATED

_LOG_WIDTH = 100
"""Columns of what is no terminal, as in the report of an audit."""
_Report = TypeVar("_Report", pytest.TestReport, pytest.CollectReport)


@contextlib.contextmanager
def begun(config: pytest.Config) -> Iterator[None]:
    """The first conftest files are loaded inside of it: they import torch with the accelerator, if that is wanted.

    Raises ``pytest.UsageError`` with one line where it cannot be simulated.
    """
    suite = _chosen(config)
    if suite is None:
        yield
        return
    running = SimulatedSuite(config, suite.devices or 1, bool(suite.compare_cpu))
    try:
        when_imported("torch", running.torch_imported)
        children.follow(running.devices)
        yield
        _import_torch()  # what stands in the way is said now, and not by the first test file
    except Refused as refused:
        raise pytest.UsageError(refused.line) from None
    config.stash[SIMULATED] = running.devices
    config.pluginmanager.register(running, "devlint-simulated-suite")


def _import_torch() -> None:
    try:
        import torch  # noqa: F401  # for what happens then
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise Refused("--devlint-simulate: torch is not installed for this Python") from None


def _chosen(config: pytest.Config) -> Suite | None:
    """How the suite is run by the command line and the configuration, ``None`` if without a simulated accelerator."""
    given = config.known_args_namespace
    options = Suite(given.devlint_simulate, given.devlint_devices, given.devlint_memory, given.devlint_compare_cpu)
    try:
        suite = options.over(_configured(config.rootpath))
    except ConfigError as error:
        raise pytest.UsageError(str(error)) from None
    if not suite.simulate:
        if options != Suite():
            name = next(key for key, _ in options.table() if key != "simulate")
            raise pytest.UsageError(
                f"--devlint-{name} is for a suite on a simulated accelerator, and needs --devlint-simulate"
            )
        return None
    most = simulator.MOST_DEVICES
    if suite.devices is not None and not 1 <= suite.devices <= most:
        raise pytest.UsageError(f"--devlint-devices: expected a number from 1 to {most}, not {suite.devices}")
    _set_memory(options.memory, suite.memory)
    return suite


def _set_memory(asked: str | None, configured: str | None) -> None:
    """Tell all processes, those of single tests and of subprocesses too, how much memory a device has."""
    if asked is None:
        if configured is not None:
            os.environ.setdefault(MEMORY_VARIABLE, configured)
        return
    try:
        size_of(asked)
    except ValueError as error:
        raise pytest.UsageError(f"--devlint-memory: {error}") from None
    os.environ[MEMORY_VARIABLE] = asked


def _configured(directory: Path) -> Suite:
    """What the nearest configuration says, at a directory or above."""
    for folder in (directory, *directory.parents):
        found = load_directory(str(folder), validate=lambda config: None)
        if found is not None:
            return found.pytest
    return Suite()


def _with(why: Told | None, report: _Report) -> _Report:
    """The report of what failed, with the reason, which every process understands."""
    if why is not None and report.failed:
        vars(report)["devlint"] = why
    return report


class SimulatedSuite:
    """A plugin: it is in every process that runs tests, and in the one that hears of them all and reports."""

    def __init__(self, config: pytest.Config, devices: int, compare_cpu: bool) -> None:
        self.devices = devices
        self._config = config
        self._compare_cpu = compare_cpu
        self._late = "torch" in sys.modules
        self._recorder: Recorder | None = None
        self._tests: set[str] = set()
        self._failed: dict[str, Told] = {}
        self._rows: list[Row] = []

    def torch_imported(self) -> None:
        """Simulate; raises :class:`Refused` where that is impossible."""
        try:
            backend = simulator.install(self.devices)
        except Exception as error:
            raise Refused(f"--devlint-simulate: {error}") from error
        self._recorder = Recorder(backend, str(self._config.rootpath))

    def pytest_report_header(self) -> str:
        """What is simulated, and what may not have noticed."""
        late = "; torch was imported before, by a plugin that may have seen no accelerator" if self._late else ""
        return f"devlint: {plural(self.devices, 'simulated CUDA device')}{late}"

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Explain what a test failed of."""
        why = self._told(call)
        if call.excinfo is not None:
            hide_the_simulator()
            end_in_torch(call.excinfo.value)  # what --pdb looks at, too
        return _with(why, (yield))

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Explain why a file cannot be imported."""
        hide_the_simulator()
        report = yield
        return _with(self._told(getattr(report, "call", None)), report)

    def _told(self, call: pytest.CallInfo[Any] | None) -> Told | None:
        if call is None or call.excinfo is None:
            return None
        return told(call.excinfo.value, self._recorder.frames if self._recorder is not None else Frames())

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Hear of a test that ran, here or in a worker of pytest-xdist."""
        self._tests.add(report.nodeid)
        self._hear(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Hear of a file that could not be imported."""
        self._hear(report)

    def _hear(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.failed:
            line = report.longreprtext.strip().rpartition("\n")[2]
            self._failed.setdefault(report.nodeid, getattr(report, "devlint", None) or unknown(line))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Hear what a worker of pytest-xdist has counted."""
        self._rows += map(tuple, getattr(node, "workeroutput", {}).get("devlint", ()))

    def pytest_sessionfinish(self) -> None:
        """Tell what this process has counted."""
        rows = self._recorder.rows() if self._recorder is not None else []
        output = getattr(self._config, "workeroutput", None)
        if output is None:
            self._rows += rows
        else:
            output["devlint"] = rows

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """The closing section."""
        if not self._tests and not self._failed:  # nothing ran, as with --collect-only
            return
        from devlint.testing.section import section

        terminalreporter.write_sep("=", f"devlint: {plural(self.devices, 'simulated CUDA device')}")
        compared: dict[str, OnTheHost] | None = {} if self._compare_cpu else None
        again = [name for name in self._failed if name in self._tests]
        if self._compare_cpu and again:
            terminalreporter.write_line(f"running {plural(len(again), 'failed test')} again without an accelerator\n")
            compared = without_accelerator(self._config, again)
        width = terminalreporter._tw.fullwidth if terminalreporter.isatty else _LOG_WIDTH
        try:
            uncollected = [name for name in self._failed if name not in self._tests]
            told = (self._failed, uncollected, self._rows, compared)
            for line in section(self._config, *told, terminalreporter.hasmarkup, width):
                terminalreporter.write_line(line)
        except Exception as error:  # the tests have run, and pytest is to end as it would have
            terminalreporter.write_line(f"devlint failed to say more: {type(error).__name__}: {error}")
