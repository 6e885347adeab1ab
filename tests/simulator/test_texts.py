"""No message of torch, no text of a tensor, names the simulator; see tests/simulator/texts.py."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.simulator.child import ran


def provoked(part: int) -> dict[str, Any]:
    """What a part of torch's operations said."""
    done = ran("tests.simulator.texts", "--part", str(part), seconds=600)
    assert done.returncode == 0, done.stdout + done.stderr
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


@pytest.mark.parametrize("part", [12, pytest.param(1, marks=pytest.mark.slow)])
def test_messages_name_nothing_that_there_is_not_on_a_cuda_machine(part: int) -> None:
    said = provoked(part)
    assert said["named"] == []
    assert said["refusals"] > 2000 / part / 2
