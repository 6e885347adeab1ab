"""The process in which tests have a simulated accelerator, or none: it collects files, and runs what it is asked for.

It talks by pickles on its standard streams: in come the arguments of pytest and then the names of tests, out go lists
of reports, or a line that says why there are none.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Generator
from functools import partial
from typing import IO, Any

import pytest

from devlint.testing.failures import NEEDS_ONE, wants_an_accelerator
from devlint.testing.marks import SIMULATED, concerns

_QUIET: dict[str, Any] = {
    "basetemp": None, "collectonly": False, "dist": "no", "distload": False, "failedfirst": False, "lf": False,
    "maxfail": 0, "maxprocesses": None, "newfirst": False, "no_cov": True, "numprocesses": None, "pyargs": False,
    "stepwise": False, "stepwise_skip": False, "trace": False, "tx": [], "usepdb": False, "xmlpath": None,
}  # fmt: skip
"""Options that are the first process's alone: how tests are chosen and distributed, and what is kept of them."""


class Worker:
    """A plugin that takes the place of pytest's loop over all tests, with so many simulated devices."""

    def __init__(self, files: list[str], devices: int, requests: IO[bytes], replies: IO[bytes]) -> None:
        self._files = files
        self._devices = devices
        self._requests = requests
        self._replies = replies
        self._pid = os.getpid()
        self._errors: list[str] = []
        self._subtests: list[pytest.TestReport] = []

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_load_initial_conftests(self, early_config: pytest.Config) -> Generator[None, None, None]:
        """Whether an accelerator is simulated was decided by who started this process, not by options."""
        early_config.known_args_namespace.devlint_simulate = False
        return (yield)

    @pytest.hookimpl(tryfirst=True)
    def pytest_cmdline_main(self, config: pytest.Config) -> None:
        """Set the options before anything heeds them."""
        for name, value in _QUIET.items():
            if hasattr(config.option, name):
                setattr(config.option, name, value)
        config.args = self._files
        config.stash[SIMULATED] = self._devices

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Remember what could not be imported here."""
        if report.failed:
            self._errors.append(report.longreprtext)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Say in a report that a test has failed since there is no accelerator."""
        report = yield
        if (
            not self._devices
            and report.failed
            and call.excinfo is not None
            and wants_an_accelerator(call.excinfo.value)
        ):
            vars(report)[NEEDS_ONE] = True
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Hear of a subtest, which reports itself while its test runs."""
        self._subtests.append(report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the tests that are asked for, until no more are."""
        items = {item.nodeid: item for item in session.items}
        while True:
            try:
                name = pickle.load(self._requests)
            except EOFError:
                return True
            # With --dist loadgroup pytest-xdist appends the group.
            item = items.get(name) or items.get(name.rpartition("@")[0])
            if item is None:
                kind = "where the accelerator is simulated" if self._devices else "without an accelerator"
                self.reply("\n".join([f"{name} is not there {kind}", *self._errors]))
            elif not self._devices and concerns(item):
                self.reply(f"{name} audits a device")
            else:
                self.reply(self._run(item, name))

    def reply(self, value: object) -> None:
        """Send something to the first process."""
        pickle.dump(value, self._replies)
        self._replies.flush()

    def _run(self, item: pytest.Item, name: str) -> list[dict[str, Any]]:
        from _pytest.runner import runtestprotocol

        # Nobody knows which test comes next, so all that it has set up is torn down.
        self._subtests.clear()
        reports = runtestprotocol(item, log=False, nextitem=None)
        reports = [*self._subtests, *reports]
        if os.getpid() != self._pid:
            # a process that the test has forked, and whose error has brought it here, is not to answer for it
            os._exit(1)
        for report in reports:
            report.nodeid = name
        item.session.shouldfail = item.session.shouldstop = False
        serialize = item.config.hook.pytest_report_to_serializable
        return [serialize(config=item.config, report=report) for report in reports]


def main() -> None:
    """Take over the standard streams, simulate as soon as torch is imported if that is wanted, and run pytest."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    # What pytest prints, it prints for nobody: the first process shows the reports.
    os.dup2(null, 0)
    os.dup2(null, 1)
    given = pickle.load(requests)
    sys.path[:] = given["path"]

    if given["devices"]:
        from devlint import simulator
        from devlint.auditor.running.import_hook import when_imported

        when_imported("torch", partial(simulator.install, given["devices"]))
    worker = Worker(given["files"], given["devices"], requests, replies)
    sys.exit(pytest.main(given["arguments"], plugins=[worker]))


if __name__ == "__main__":
    main()
