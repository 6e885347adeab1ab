"""The marker ``device_audit``, and which tests it concerns; pytest loads this at every start."""

from __future__ import annotations

import pytest

NAME = "device_audit"
MARKER = (
    "device_audit(h2d_per_step=None, syncs_per_step=None, no_device_mismatch=False, ..., simulate=None, devices=1, "
    "steps=None): audit the test with devlint and enforce budgets; see docs/pytest.md of devlint"
)
SIMULATED = pytest.StashKey[int]()
"""How many devices are simulated in this process."""


def concerns(item: pytest.Item) -> bool:
    """Whether a test has the marker or the fixture."""
    return item.get_closest_marker(NAME) is not None or NAME in getattr(item, "fixturenames", ())


def simulated(item: pytest.Item) -> int:
    """How many devices are simulated in the process that runs a test."""
    return item.config.stash.get(SIMULATED, 0)
