"""What a run measured at a place of the code."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Measurement:
    """What an audit saw at a site, summed over all processes.

    ``steps`` are the training and evaluation steps in which it happened, ``per_step`` the calls of a median training
    step of one process, or of an average evaluation step where it did not happen in training.  ``seconds`` is how long
    the host was blocked, ``None`` in a simulated run.  ``repeats`` counts copies of something that had been copied
    there before and had not changed since.
    """

    calls: int
    bytes: int = 0
    seconds: float | None = None
    steps: int = 0
    per_step: float = 0.0
    bytes_per_step: float = 0.0
    repeats: int = 0
    ranks: tuple[int, ...] = ()

    @property
    def each_step(self) -> bool:
        """Whether it happened at every step, in enough of them to say so."""
        return self.per_step >= 1 and self.steps >= ENOUGH_STEPS


ENOUGH_STEPS = 3
"""What was seen in fewer steps of a run may be a matter of its beginning."""
