"""What the rules of the family `placement` claim."""

from __future__ import annotations

from tests.running.claims import Claim, Unobservable, raising

MISMATCH = raising(
    r"RuntimeError: Expected all tensors to be on the same device",
    r"RuntimeError: indices should be either on cpu or on the same device",
    r"RuntimeError: Input and hidden tensors are not at the same device",
    r"RuntimeError: expected self and mask to be on the same device",
    r"RuntimeError: Input type .* and weight type .* should be the same",
)

CLAIMS: dict[str, Claim | Unobservable] = {
    "DVL101": MISMATCH,
}
