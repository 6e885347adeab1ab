"""Runs the fixtures of the rules on the real device: what they claim was seen on the simulated one."""

from __future__ import annotations

import torch

from tests.running.outcomes import GROUPS, run

_ANOTHER = "invalid device ordinal"
"""What torch says of a second device where there is only one."""


def differences() -> dict[str, str]:
    """What is not as it is said to be, by place; empty where all is well."""
    outcomes = [outcome for pattern in GROUPS["simulated"] for outcome in run("real", pattern)]
    wrong = [line.partition(": ")[::2] for outcome in outcomes for line in outcome.complaints()]
    alone = torch.cuda.device_count() < 2
    return {place: words for place, words in wrong if not (alone and _ANOTHER in words)}
