"""Sites where the host waits for the device, or where memory is held for longer than needed."""

from __future__ import annotations

import ast

from devlint.immutable import immutable
from devlint.sites.base import Operand, Site, Step


@immutable(frozen=True, slots=True)
class Sync(Site):
    """A place where the host waits for the device: ``.item()``, ``bool(t)``, ``nonzero``, ``synchronize``.

    ``region`` says how often: "train" and "eval" in every training or evaluation step, "element" for every part of
    such a step, "loop" in every round of some other loop, "forward" in every call of a module, "check" in every call of
    a function that raises or goes on, as the values are; "call" in every call of any other function, however often that
    is called.
    """

    spelled: str
    value: Operand | None = None
    region: str = ""


@immutable(frozen=True, slots=True)
class Timing(Site):
    """A time between two readings of a clock, the first at ``started``.

    ``work`` is what the device was given in between and nothing had waited for at the second reading.
    """

    started: Step
    work: Step


@immutable(frozen=True, slots=True)
class Kept:
    """A loss that is kept: ``node`` is the loss, ``value`` its code, ``holder`` what keeps it and ``kind`` how.

    ``kind`` is "sum" or "list".
    """

    node: ast.AST
    value: str
    holder: str
    kind: str


@immutable(frozen=True, slots=True)
class Keep(Site):
    """A loss that is kept, with the graph behind it, from one round of a loop to the next.

    ``backward`` is where the round has done with the graph, ``emptied`` where some rounds let go of what they and those
    before them have kept.  ``others`` are kept by the same rounds, as long as this one, and ``passing`` says that all
    rounds are of one step of the optimizer, which lets go of all that is kept.
    """

    kept: Kept
    backward: Step
    emptied: Step | None = None
    others: tuple[Kept, ...] = ()
    passing: bool = False
