"""Leaves most passes of a long run unrecorded, where recording all of them would slow it down.

What the audit costs are the copies that stay on the device: casts of mixed precision, tensors made contiguous.  They
are nothing to it, but each of them asks.  Nearly all of them happen in a *pass*, from the call of the outermost module
to the end of backward.  So the first steps are recorded whole; after them, if asking takes more of a step than it may,
the kernel of ``copy_`` and torch's warnings of waits are left alone in the passes of all steps but every n-th.  What
happens outside of the passes is always recorded, and so is what other kernels see (``item``, ``nonzero``).

In a pass that was not recorded, the same is taken to have happened as in the last one that was, as far as it happened
in the one before, too.
"""

from __future__ import annotations

import math
import statistics
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping

from devlint.auditor.history import Pending, Tally
from devlint.auditor.recorder.kernels import COPY, Kernels
from devlint.auditor.recorder.syncwarnings import NAME, SyncWarnings
from devlint.auditor.recorder.waits import Waits
from devlint.auditor.session import Listener, Session
from devlint.record import Sampled

WHOLE = 50
"""So many training steps are recorded whole."""
_SHARE = 0.01
"""Asking may take so much of a step."""
_ASKING = 8.5e-6
"""Seconds that a copy on the device takes longer, in a model, where caches are cold."""
_SWITCHING = 1e-4
"""Seconds that leaving the kernel alone, and taking it back, take."""
_PASSES = 64
"""A step that has more passes than this is recorded whole from there on."""
_TIMES = 16
"""The step is as long as the median of so many."""


class Sampling(Listener):
    """Decides at the end of each step whether the next is recorded."""

    def __init__(self, session: Session, kernels: Kernels, warnings: SyncWarnings, waits: Waits) -> None:
        self._session = session
        self._kernels = kernels
        self._warnings = warnings
        self._waits = waits
        self.clock: Callable[[], float] = time.perf_counter
        self._recording = True
        self._left_alone = False
        self._missed = False
        """Whether a pass of the step was not recorded."""
        self._in_pass = False
        self._steps = 0
        self._skipped = 0
        self._every = 1
        self._share = 0.0
        self._number = 0
        """How many passes the step has had."""
        self._asked = 0
        """How many copies on the device they made."""
        self._started: float | None = None
        self._times: deque[float] = deque(maxlen=_TIMES)
        self._books: Pending = {}
        self._before: Pending = {}
        self._calls = 0
        self._last: dict[int, Pending] = {}
        self._usual: dict[int, Pending] = {}
        """What the passes of a step have in common with those of the recorded step before, by their number."""

    def install(self) -> None:
        """See everything again in the end."""
        self._session.patches.add(self._take_back)

    def describe(self) -> Mapping[str, object]:
        """``sampled``, if anything was left out."""
        return {"sampled": Sampled(steps=self._skipped, share=self._share)} if self._skipped else {}

    def on_pass_begin(self) -> None:
        """Leave the kernel alone, unless this step is recorded."""
        if self._in_pass or self._number == _PASSES:
            return
        self._in_pass = True
        self._number += 1
        ledger = self._session.ledger
        if self._recording:
            self._books = ledger.pending
            self._before = _inside(ledger.pending)
            self._calls = self._kernels.calls
        elif not self._is_shared():
            # what waits in the pass is not seen
            self._waits.waited()
            self._kernels.copies.take_out()
            self._warnings.leave_alone()
            self._left_alone = self._missed = True

    def on_pass_end(self) -> None:
        """Take the kernel back, and count what usually happens in such a pass."""
        if not self._in_pass:
            return
        self._in_pass = False
        if self._left_alone:
            self._take_back()
            for what, tally in self._usual.get(self._number, {}).items():
                self._session.ledger.tally(what).take(tally)
        elif self._recording:
            self._learn()

    def _learn(self) -> None:
        """Keep what this pass has in common with the same one of the recorded step before."""
        self._asked += self._kernels.calls - self._calls
        pending = self._session.ledger.pending
        found = _inside(pending) if pending is self._books else {}
        if not found:
            self._usual[self._number] = self._last[self._number] = {}
            return
        for what, tally in self._before.items():
            if what in found:
                found[what] = _less(found[what], tally)
        found = {what: tally for what, tally in found.items() if tally.calls}
        last = self._last.get(self._number, {})
        self._usual[self._number] = {what: tally for what, tally in found.items() if what in last}
        self._last[self._number] = found

    def on_step_end(self) -> None:
        """Decide whether the next step is recorded."""
        self.on_pass_end()
        now = self.clock()
        if self._number:
            if self._started is not None:
                self._times.append(now - self._started)
            self._steps += 1
            self._skipped += self._missed
            if self._recording:
                self._plan()
        self._started = now
        self._number = self._asked = 0
        self._missed = False
        self._recording = self._steps < WHOLE or self._steps % self._every == 0

    def _plan(self) -> None:
        """Every how many steps are to be recorded."""
        asking = self._asked * _ASKING
        self._every = 1
        if self._times and asking > 4 * _SWITCHING * self._number:
            self._share = asking / statistics.median(self._times)
            self._every = max(math.ceil(self._share / _SHARE), 1)

    def _is_shared(self) -> bool:
        """Whether another thread of the script copies, too: kernels are exchanged only where nobody may be in one."""
        others = self._kernels.threads - {threading.get_ident()}
        return bool(others) and any(thread.ident in others for thread in threading.enumerate())

    def _take_back(self) -> None:
        if self._left_alone:
            self._left_alone = False
            self._kernels.copies.put_in()
            self._warnings.take_back()


def _inside(pending: Pending) -> Pending:
    """The sums so far of what is not seen in a pass that is not recorded."""
    return {
        what: _less(tally, Tally())
        for what, tally in list(pending.items())  # a list, as another thread may add to it
        if (what.kind, what.name) in (("copy", COPY), ("sync", NAME))
    }


def _less(tally: Tally, other: Tally) -> Tally:
    """The difference, without the times of single calls."""
    return Tally(
        calls=tally.calls - other.calls,
        bytes=tally.bytes - other.bytes,
        seconds=tally.seconds - other.seconds,
        repeats=tally.repeats - other.repeats,
        doubled=tally.doubled - other.doubled,
        double=tally.double,
        threads=set(tally.threads),
    )
