"""The standard streams, which the caller may have closed."""

from __future__ import annotations

import os
import sys


def open_streams() -> None:
    """Let a file stand for the standard streams that the caller closed, where Python has None."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # stays open until the process ends
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # stays open until the process ends
