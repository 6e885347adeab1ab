"""The simulated accelerator's own layer, by the cases in `cases/`."""

from __future__ import annotations

import pytest
import torch
from torch.utils import backend_registration

from devlint.simulator import backend, devices
from tests.simulator import child

CASES = [
    pytest.param(devices, f"{stem}.{name}", id=f"{stem}.{name}")
    for stem, devices in child.files().items()
    for name in child.names(stem)
]


@pytest.fixture
def _unregistered(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if no other test of this process had simulated devices."""
    monkeypatch.setattr(devices, "_count", 0)


@pytest.mark.usefixtures("_unregistered")
def test_a_torch_without_backends_from_python_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(backend_registration, "_setup_privateuseone_for_python_backend")
    with pytest.raises(
        backend.DevicesError, match=r"^the simulated accelerator needs torch 2\.10 or newer, this is 2\."
    ):
        backend.install(1)
    assert devices.count() == 0


@pytest.mark.usefixtures("_unregistered")
def test_the_device_type_of_another_package_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch._C, "_get_privateuse1_backend_name", lambda: "npu")
    with pytest.raises(backend.DevicesError, match="the device type 'npu' of another package"):
        backend.install(1)
    assert devices.count() == 0


@pytest.mark.parametrize(("devices", "case"), CASES)
def test_case(devices: int, case: str) -> None:
    failure = child.outcomes(devices)[case]
    assert failure is None, failure
