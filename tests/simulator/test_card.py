"""The memory of the simulated card."""

from __future__ import annotations

import pytest
import torch

import devlint.simulator
from devlint.simulator import backend
from devlint.simulator.masquerade import card


@pytest.mark.parametrize(
    ("text", "size"),
    [("8GiB", 8 << 30), ("8g", 8 << 30), ("512 MiB", 512 << 20), ("1.5GB", 3 << 29), ("4096", 4096), ("2k", 2048)],
)
def test_sizes_are_read_as_people_write_them(text: str, size: int) -> None:
    assert card.size_of(text) == size


@pytest.mark.parametrize("text", ["", "much", "0GiB", "-1", "8GiBB"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no size of memory such as 8GiB$"):
        card.size_of(text)


def test_a_wrong_setting_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(card.MEMORY_VARIABLE, "much")
    monkeypatch.setattr(devlint.simulator, "installed", lambda: False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(backend.DevicesError, match=r"^DEVLINT_SIMULATED_MEMORY: 'much' is no size of memory"):
        devlint.simulator.install()
