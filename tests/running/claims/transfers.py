"""What the rules of the family `transfers` claim."""

from __future__ import annotations

from tests.running.claims import Claim, Unobservable, costing

CLAIMS: dict[str, Claim | Unobservable] = {
    "DVL201": costing("move"),
}
