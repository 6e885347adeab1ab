"""What is said of a machine, and that no device is woken to say it."""

from __future__ import annotations

import platform
import socket
from types import SimpleNamespace

import pytest
import torch

from devlint.auditor import environment
from devlint.auditor.environment import Surroundings, describe
from devlint.auditor.session import Session, Settings
from devlint.record import Device

GIB = 2**30


@pytest.fixture
def cards(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A torch for CUDA, with two cards that say what a test wants."""
    state = SimpleNamespace(awake=True, count=2, peak=[3 * GIB, 0], asked=[])

    def properties(index: int) -> SimpleNamespace:
        state.asked.append(index)
        return SimpleNamespace(name=f"Card {index}", major=8, minor=6, total_memory=24 * GIB)

    monkeypatch.setattr(torch.version, "cuda", "12.8")
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: state.awake)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: state.count)
    monkeypatch.setattr(torch.cuda, "_device_count_nvml", lambda: state.count)
    monkeypatch.setattr(torch.cuda, "get_device_properties", properties)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda index: state.peak[index])
    monkeypatch.setattr(torch.cuda, "max_memory_reserved", lambda index: 2 * state.peak[index])
    return state


def test_a_machine_without_an_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    if torch.version.cuda or torch.version.hip:
        pytest.skip("this torch is not a CPU build")
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    found = describe()
    assert found.python == platform.python_version()
    assert found.torch == torch.__version__
    assert found.build in ("CPU", "MPS")
    assert found.cpu_count >= 1
    assert found.host == ""
    assert found.visible_devices is None
    if found.build == "CPU":
        assert found.devices == ()


def test_cards_that_are_awake_say_what_they_are(cards: SimpleNamespace) -> None:
    found = describe()
    assert found.build == "CUDA 12.8"
    assert found.devices == (
        Device(name="cuda:0", model="Card 0", capability=(8, 6), memory=24 * GIB, peak=3 * GIB, reserved=6 * GIB),
        Device(name="cuda:1", model="Card 1", capability=(8, 6), memory=24 * GIB),
    )


def test_cards_that_are_asleep_are_counted_and_not_asked(cards: SimpleNamespace) -> None:
    cards.awake = False
    assert describe().devices == (Device(name="cuda:0"), Device(name="cuda:1"))
    assert cards.asked == []
    cards.count = -1  # the driver's library is not there
    assert describe().devices == ()


def test_a_card_that_failed_is_still_named(cards: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(index: int) -> None:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(torch.cuda, "max_memory_allocated", fail)
    assert describe().devices == (Device(name="cuda:0"), Device(name="cuda:1"))


def test_the_greatest_peak_is_kept_when_the_script_resets_it(cards: SimpleNamespace) -> None:
    listener = Surroundings(Session(Settings()))
    listener.install()
    listener.describe()
    cards.peak = [1 * GIB, 2 * GIB]
    found = listener.describe()["environment"]
    assert [(device.peak, device.reserved) for device in found.devices] == [  # type: ignore[attr-defined]  # it is an Environment
        (3 * GIB, 6 * GIB),
        (2 * GIB, 4 * GIB),
    ]


def test_rocm_is_called_so(cards: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "hip", "6.3.42131-fa1d09cbd")
    found = describe()
    assert found.build == "ROCm 6.3"
    assert found.devices[0].capability is None  # `major` means something else there


def test_of_a_simulated_device_nothing_is_known(cards: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.__config__, "show", lambda: "TORCH_VERSION=2.13.0, USE_CUDA=0, USE_ROCM=OFF")
    found = describe(simulated=True)
    assert found.build == "CPU"  # whatever `torch.version` claims
    assert found.driver == ""
    assert found.devices == (Device(name="cuda:0", model="(simulated)"), Device(name="cuda:1", model="(simulated)"))
    assert cards.asked == []


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\n", "535.104.05"),
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86  Release Build\nGCC version: 12.2.0",
            "570.86",
        ),
        ("", ""),
    ],
)
def test_the_driver_is_read_from_the_system(text: str, version: str, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "version").write_text(text)
    monkeypatch.setattr(environment, "_AMD", str(tmp_path / "missing"))
    monkeypatch.setattr(environment, "_NVIDIA", str(tmp_path / "version"))
    assert environment._driver() == version


def test_the_host_is_named_where_there_are_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    found = describe()
    assert found.host == socket.gethostname()
    assert found.visible_devices == "1"
