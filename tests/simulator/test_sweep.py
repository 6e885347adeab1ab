"""A part of torch's own operations on the simulated device; `python -m tests.simulator.sweep` takes them all."""

from __future__ import annotations

import json

import pytest

from tests.simulator.child import ran


@pytest.mark.slow
def test_operations_equal_the_host_and_refuse_its_tensors() -> None:
    done = ran("tests.simulator.sweep", "--part", "6")
    assert done.returncode == 0, done.stdout + done.stderr
    counts = json.loads(done.stdout.splitlines()[-1])
    # Of some 620 operations, every sixth with up to two samples; half of them take two tensors or more.
    assert counts["equal"] > 150
    assert counts["refused"] > 50
    assert counts["results refused"] > 50
