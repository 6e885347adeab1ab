"""The table as text: the same facts are always the same bytes, and one function is one line."""

from __future__ import annotations

import json
from typing import Any

# What a reader of the table takes for granted where nothing is said: see devlint/flow/catalog/torch_table.py.
_DEFAULTS: dict[str, object] = {"rule": "same_as_input", "device_check": "composite"}


def render(table: dict[str, Any]) -> str:
    """JSON with sorted keys, one line per function and module, nothing written out that is the default."""
    lines = []
    for key, value in sorted(table.items()):
        if isinstance(value, dict):
            entries = (
                f"{_compact(name)}:{_compact(_without_defaults(entry))}" for name, entry in sorted(value.items())
            )
            lines.append(f"{_compact(key)}:{{\n" + ",\n".join(entries) + "\n}")
        else:
            lines.append(f"{_compact(key)}:{_compact(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _without_defaults(entry: dict[str, Any]) -> dict[str, Any]:
    written = {}
    for key, value in entry.items():
        if isinstance(value, tuple):
            value = " ".join(value)
        elif isinstance(value, (set, frozenset)):
            value = " ".join(sorted(value))
        says_nothing = value is None or value == "" or (value is False and key not in _TRI_STATE)
        if not says_nothing and _DEFAULTS.get(key) != value:
            written[key] = value
    return written


# False says something there, which an absent key does not.
_TRI_STATE = frozenset({"honours_default_device", "accepts_cpu_scalar"})


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=True)
