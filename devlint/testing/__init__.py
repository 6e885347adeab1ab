"""The pytest plugin: a suite, or tests marked with ``device_audit``, on a simulated accelerator where there is no GPU.

pytest loads this module at every start, so it imports nothing but pytest: what it takes comes with the option, or with
the first test that asks for an audit.

PYTEST_DONT_REWRITE: the process for single tests imports it before pytest, which is not to warn of that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from devlint.testing.marks import MARKER, NAME, concerns

if TYPE_CHECKING:
    from devlint.testing.auditing import Block
    from devlint.testing.parent import Simulation

_simulation: pytest.StashKey[Simulation] = pytest.StashKey()
_CONFIGURED = re.compile(rb"""(?m)^\s*(?:\[[^]\n]*devlint[^]\n]*pytest|["']?(?:devlint\W+)?pytest["']?\s*[.=])""")
"""What a pyproject.toml with a table ``[tool.devlint.pytest]`` has, and few others."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of a suite that is run on a simulated accelerator."""
    group = parser.getgroup("devlint", "devlint: the suite on a simulated accelerator")
    group.addoption(
        "--devlint-simulate",
        action="store_true",
        default=None,
        help="run all tests with simulated CUDA devices, and explain device errors at the end",
    )
    group.addoption(
        "--no-devlint-simulate",
        action="store_false",
        dest="devlint_simulate",
        help="run them without, whatever the configuration says",
    )
    group.addoption("--devlint-devices", type=int, metavar="N", help="how many devices to simulate (default: 1)")
    group.addoption(
        "--devlint-memory", metavar="SIZE", help="the memory of each device, such as 16GiB (default: 80GiB)"
    )
    group.addoption(
        "--devlint-compare-cpu",
        action="store_true",
        default=None,
        help="run the tests that failed again without an accelerator, and tell which fail only with one",
    )


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, None, None]:
    """Simulate from the first import of torch on, which may be that of a conftest.py, if the suite is to be run so."""
    given = early_config.known_args_namespace
    asked = (given.devlint_simulate, given.devlint_devices, given.devlint_memory, given.devlint_compare_cpu)
    if given.devlint_simulate is False or given.help or given.version:
        return (yield)
    if not any(value is not None for value in asked) and not _may_be_configured(early_config.rootpath):
        return (yield)
    from devlint.testing.suite import begun

    with begun(early_config):
        return (yield)


def pytest_configure(config: pytest.Config) -> None:
    """Tell pytest of the marker."""
    config.addinivalue_line("markers", MARKER)


def pytest_report_header(config: pytest.Config) -> str | None:
    """What was asked for in vain."""
    options = config.option
    if options.devlint_simulate is False and options.devlint_compare_cpu:
        return "devlint: --devlint-compare-cpu has no effect with --no-devlint-simulate"
    return None


@pytest.fixture
def device_audit(request: pytest.FixtureRequest) -> Callable[..., Block]:
    """Audits a block of a test: ``with device_audit(h2d_per_step=2) as run:``; budgets are enforced at its end.

    ``run`` is a :class:`devlint.audit` with ``run.record``, ``run.findings`` and ``run.report()``.
    """
    from devlint.testing.auditing import Block

    def block(**arguments: Any) -> Block:
        return Block(request.node, arguments)

    return block


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run a test elsewhere whose accelerator has to be simulated: it could not be taken away from the other tests."""
    if not concerns(item):
        return None
    from devlint.testing.auditing import simulates

    if not simulates(item):
        return None
    from devlint.testing.parent import Simulation

    simulation = item.config.stash.setdefault(_simulation, Simulation(item.session))
    simulation.protocol(item, nextitem)
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Audit a test with the marker."""
    if item.get_closest_marker(NAME) is None:
        return (yield)
    from devlint.testing.auditing import Block, arguments_of

    with Block(item, arguments_of(item)):
        return (yield)
    return None  # the test had made the steps that it was to make


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Let the other process end, before reports are written."""
    simulation = session.config.stash.get(_simulation, None)
    if simulation is not None:
        simulation.close()


def _may_be_configured(directory: Path) -> bool:
    """Whether the nearest pyproject.toml for devlint may speak of pytest; it is read in full only then."""
    for folder in (directory, *directory.parents):
        file = folder / "pyproject.toml"
        try:
            text = file.read_bytes() if file.is_file() else b""
        except OSError:
            continue
        if b"devlint" in text and _CONFIGURED.search(text):
            return True
    return False
