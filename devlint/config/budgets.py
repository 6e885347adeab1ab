"""Budgets: limits to what a run may copy and wait, by name, as a configuration or a test states them."""

from __future__ import annotations

from collections.abc import Mapping

from devlint.config.messages import did_you_mean

Budgets = Mapping[str, float]
"""Limits by name; what is forbidden outright has True."""

COUNTED = (
    *("h2d", "h2d_per_step", "h2d_bytes", "h2d_bytes_per_step"),
    *("d2h", "d2h_per_step", "d2h_bytes", "d2h_bytes_per_step"),
    *("syncs", "syncs_per_step"),
)
FORBIDDEN = ("no_device_mismatch", "no_findings")
NAMES = (*COUNTED, *FORBIDDEN)


class BudgetError(ValueError):
    """No such budget, or no such limit; the text is one line."""


def read(table: Mapping[str, object]) -> dict[str, float]:
    """Read limits by name, in which ``-`` may stand for ``_``; a :class:`BudgetError` says what is wrong with them.

    What may happen after all (``no_findings = false``) is no limit, and left out.
    """
    found: dict[str, float] = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name not in NAMES:
            # as in TOML, or in Python
            spelled = [each.replace("_", "-") if "-" in key else each for each in NAMES]
            raise BudgetError(f"there is no budget {key!r}{did_you_mean(key, spelled)}")
        if name in FORBIDDEN:
            if not isinstance(value, bool):
                raise BudgetError(f"{key}: expected true or false")
            if value:
                found[name] = value
        elif isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
            raise BudgetError(f"{key}: expected a number, 0 or more")
        else:
            found[name] = value
    return found
