"""Runs the fixtures of the rules on the real device: what they claim was seen on the simulated one."""

from __future__ import annotations

import torch

from tests.running.cases import fixtures
from tests.running.outcomes import GROUPS, run

_ANOTHER = "invalid device ordinal"
"""What torch says of a second device where there is only one."""
_CODE = len("DVL101")


def codes() -> list[str]:
    """The rules whose fixtures are about devices."""
    return sorted({path.parent.name[:_CODE] for pattern in GROUPS["simulated"] for path in fixtures(pattern)})


def differences(code: str) -> dict[str, str]:
    """What is not as it is said to be in the fixtures of a rule, by place; empty where all is well."""
    wrong = [line.partition(": ")[::2] for outcome in run("real", code) for line in outcome.complaints()]
    alone = torch.cuda.device_count() < 2
    return {place: words for place, words in wrong if not (alone and _ANOTHER in words)}
