"""What a run leaves behind at a place of the code, and what that says of a rule's claim."""

from __future__ import annotations

from devlint.immutable import immutable

COPY = "a copy between host and device"
UPLOAD = "a copy to the device"
ALWAYS_NEW = "copies to the device, each of something new"
REPEATED = "copies of what had been copied before"
FROM_PAGEABLE = "copies from pageable memory"
WAITED_FOR_PINNED = "copies from pinned memory that the host waited for"
DOWNLOAD = "a copy from the device"
READ_TOO_EARLY = "copies that were read before anything waited for them"
ONLY_IN_PLACE = "moves that returned their input, and no copy"
MOVE = "a move that returned its input"
PIN = "a copy to pinned memory"
WAIT = "a wait for the device"
WAIT_IN_STEP = "a wait for the device in a training step"
CALL = "a call that costs by itself"
CALL_IN_STEP = "a call that costs by itself, in a training step"
RAN = "anything, and no mismatch"
MISMATCH = "tensors on different devices that met"
LOADER = "a loader that was iterated"
PINNED_BATCHES = "a loader whose batches were pinned"
PAGEABLE_BATCHES = "a loader whose batches were copied from pageable memory"
HOST_BATCHES = "a loader whose batches were on the CPU"
WITHOUT_WORKERS = "a loader without worker processes"
WITH_WORKERS = "a loader with worker processes"
OPTIMIZER = "an optimizer"
STAYED = "an optimizer whose parameters stayed where they were"
WRAPPER = "a wrapper for several devices"


@immutable(frozen=True, slots=True)
class Traces:
    """What a run can say of the claims of a rule: any one of a tuple counts.

    ``left`` is what the code leaves behind whenever it runs, so that without it the run did not get there; empty where
    it can run and leave nothing.  What an audit's own finding of the rule confirms needs not be in ``confirm``.
    """

    left: tuple[str, ...] = ()
    confirm: tuple[str, ...] = ()
    contradict: tuple[str, ...] = ()


CONFIRMED, CONTRADICTED, NOT_REACHED, UNDECIDED = "confirmed", "contradicted", "not reached", "undecided"
VERDICTS = (CONFIRMED, UNDECIDED, NOT_REACHED, CONTRADICTED)
"""In the order in which findings are shown."""
