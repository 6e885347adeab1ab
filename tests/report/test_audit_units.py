"""Numbers as people read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlint.report.wording import between, duration, listed, number, rank_list, share, size


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (4, "4 B"),
        (0.5, "0.5 B"),
        (1023, "1,023 B"),
        (1024, "1.00 KiB"),
        (200_704, "196 KiB"),
        (1024**2 - 1, "1.00 MiB"),
        (10.5 * 1024**2, "10.5 MiB"),
        (79 * 2**30, "79.0 GiB"),
        (2**50, "1024 TiB"),
    ],
)
def test_size(count: float, text: str) -> None:
    assert size(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 us"),
        (2e-7, "<1 us"),
        (12.4e-6, "12 us"),
        (999.6e-6, "1.00 ms"),
        (0.0123, "12.3 ms"),
        (0.9996, "1.00 s"),
        (99.96, "100 s"),
        (125, "2 min"),
        (3 * 3600, "3.0 h"),
    ],
)
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (0.001, "<0.01"), (0.25, "0.25"), (1.5, "1.5"), (16, "16"), (1234.5, "1,234")]
)
def test_number(value: float, text: str) -> None:
    assert number(value) == text


def test_share() -> None:
    assert share(1, 3) == "33 %"
    assert share(1, 1000) == "<1 %"
    assert share(0, 1000) == "0 %"
    assert share(1, 0) == "0 %"


def test_between_says_the_unit_once() -> None:
    assert between([0.0012, 0.0012], duration) == "1.20 ms"
    assert between([0.0034, 0.0012], duration) == "1.20-3.40 ms"
    assert between([0.00002, 0.0012], duration) == "20 us-1.20 ms"
    assert between([1, 2], number) == "1-2"


@given(st.floats(0, 1e18))
def test_numbers_are_short(value: float) -> None:
    assert len(size(value)) <= 12
    assert len(duration(min(value, 1e9))) <= 10


def test_lists_of_names() -> None:
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert listed([]) == ""
    assert listed("abcdefghij", 4) == "a, b, c and 7 more"
    assert rank_list([3, 1]) == "ranks 1 and 3"
    assert rank_list(range(8)) == "ranks 0 to 7"
    assert rank_list([2]) == "rank 2"
