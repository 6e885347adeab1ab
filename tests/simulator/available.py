"""Whether this torch can simulate an accelerator, for tests that need one."""

from __future__ import annotations

import pytest
import torch.utils.backend_registration

CAN_SIMULATE = hasattr(torch.utils.backend_registration, "_setup_privateuseone_for_python_backend")
REASON = "this torch is too old to simulate an accelerator on (before 2.10)"
simulates = pytest.mark.skipif(not CAN_SIMULATE, reason=REASON)


def need_simulation() -> None:
    """Skip the test, or the tests that need a fixture, where it cannot be had."""
    if not CAN_SIMULATE:
        pytest.skip(REASON)
