"""The pytest plugin: tests marked with ``device_audit`` keep budgets, on a simulated accelerator where there is no GPU.

pytest loads this module at every start, so it imports nothing but pytest: what an audit needs comes with the first
test that asks for one.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

import pytest

from devlint.testing.marks import MARKER, NAME, concerns, is_simulated

if TYPE_CHECKING:
    from devlint.testing.auditing import Block
    from devlint.testing.parent import Simulation

_simulation: pytest.StashKey[Simulation] = pytest.StashKey()


def pytest_configure(config: pytest.Config) -> None:
    """Tell pytest of the marker."""
    config.addinivalue_line("markers", MARKER)


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
    if is_simulated(item) or not concerns(item):
        return None
    from devlint.testing.auditing import simulates

    if not simulates(item):
        return None
    from devlint.testing.parent import Simulation

    simulation = item.config.stash.setdefault(_simulation, Simulation(item.config))
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
