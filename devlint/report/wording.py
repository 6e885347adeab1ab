"""Wording: plurals, lists, and numbers with their units, as short as they can be and still be read at a glance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from devlint.finding import Severity

_SIZES = ("B", "KiB", "MiB", "GiB", "TiB")
_TIMES = (("us", 1e-6), ("ms", 1e-3), ("s", 1.0))
_ROUNDS_UP = 999.5
"""What is shown without decimals from here on would read 1000."""


def size(count: float) -> str:
    """Bytes: ``4 B``, ``64.5 KiB``, ``1.00 TiB``."""
    value, unit = float(count), _SIZES[0]
    for unit in _SIZES:
        if value < 1023.5 or unit == _SIZES[-1]:
            break
        value /= 1024
    return f"{number(value)} {unit}" if unit == "B" else f"{_three(value)} {unit}"


def duration(seconds: float) -> str:
    """Seconds: ``0 us``, ``12.3 us``, ``1.20 ms``, ``4.20 s``, ``12 min``, ``3.5 h``."""
    if seconds >= 2 * 3600:
        return f"{seconds / 3600:.1f} h"
    if seconds >= 120:
        return f"{seconds / 60:.0f} min"
    unit, scale = next((found for found in _TIMES if seconds / found[1] < _ROUNDS_UP), _TIMES[-1])
    value = seconds / scale
    if unit == "us":
        return f"{value:.0f} us" if value >= 1 or value == 0 else "<1 us"
    return f"{_three(value)} {unit}"


def number(value: float) -> str:
    """A count or the mean of one: ``0.25``, ``1.5``, ``16``, ``1,200``."""
    if value == int(value):
        return f"{int(value):,}"
    if value >= 100:
        return f"{value:,.0f}"
    if value < 0.01:
        return "<0.01"
    return f"{value:.2f}".rstrip("0").rstrip(".") if value < 10 else f"{value:.1f}"


def share(part: float, whole: float) -> str:
    """A percentage: ``33 %``, ``<1 %``."""
    percent = 100 * part / whole if whole else 0.0
    return "<1 %" if 0 < percent < 1 else f"{percent:.0f} %"


def between(values: Iterable[float], show: Callable[[float], str]) -> str:
    """One value, or the least and the greatest with the unit said once: ``1-2``, ``1.20-3.40 ms``."""
    values = list(values)
    low, high = show(min(values)), show(max(values))
    if low == high:
        return high
    low_number, _, low_unit = low.partition(" ")
    high_unit = high.partition(" ")[2]
    return f"{low_number}-{high}" if low_unit == high_unit else f"{low}-{high}"


def _three(value: float) -> str:
    """Three digits that count."""
    digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{digits}f}"


def plural(count: int, noun: str, many: str = "") -> str:
    """``1 file``, ``2 files``; ``many`` is the plural of a noun that takes no s."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {many or noun + 's'}"


def problems(counts: Mapping[Severity, int]) -> str:
    """``3 problems (1 error, 2 hints)``."""
    kinds = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "hint"}
    parts = [plural(counts[severity], noun) for severity, noun in kinds.items() if counts.get(severity)]
    return f"{plural(sum(counts.values()), 'problem')} ({', '.join(parts)})"


def listed(words: Sequence[str], most: int = 8, last: str = "and") -> str:
    """``a``, ``a and b``, ``a, b and c``; a long list ends with how many there are besides."""
    if len(words) > most:
        words = [*words[: most - 1], f"{len(words) - most + 1} more"]
    return f" {last} ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def rank_list(numbers: Iterable[int]) -> str:
    """``rank 1``, ``ranks 0 and 2``, ``ranks 0 to 7``."""
    found = sorted(set(numbers))
    if len(found) == 1:
        return f"rank {found[0]}"
    if len(found) > 2 and found[-1] - found[0] == len(found) - 1:
        return f"ranks {found[0]} to {found[-1]}"
    return f"ranks {listed([str(number) for number in found])}"
