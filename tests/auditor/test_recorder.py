"""The recorder on the simulated accelerator, by the cases in `cases/`."""

from __future__ import annotations

import pytest

from tests.simulator import child

FOLDER = "tests/auditor/cases"
CASES = [
    pytest.param(devices, f"{stem}.{name}", id=f"{stem}.{name}")
    for stem, devices in child.files(FOLDER).items()
    for name in child.names(stem, FOLDER)
]


@pytest.mark.parametrize(("devices", "case"), CASES)
def test_case(devices: int, case: str) -> None:
    failure = child.outcomes(devices, FOLDER)[case]
    assert failure is None, failure
