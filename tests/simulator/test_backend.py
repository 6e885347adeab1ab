"""The simulated accelerator's own layer, by the cases in `cases/`."""

from __future__ import annotations

import pytest

from tests.simulator import child

CASES = [
    pytest.param(devices, f"{stem}.{name}", id=f"{stem}.{name}")
    for stem, devices in child.files().items()
    for name in child.names(stem)
]


@pytest.mark.parametrize(("devices", "case"), CASES)
def test_case(devices: int, case: str) -> None:
    failure = child.outcomes(devices)[case]
    assert failure is None, failure
