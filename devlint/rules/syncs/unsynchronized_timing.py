"""DVL402: a time taken of work that the device has not done yet."""

from __future__ import annotations

import re

from devlint.rules.base import Applicability, Fix, Report, Reports, Rule, Severity
from devlint.rules.code.blocks import beside, statement_around
from devlint.rules.code.edits import fix_of, put_before
from devlint.rules.code.imports import importing
from devlint.sites.costs import Timing

_SYNCHRONIZE = "torch.cuda.synchronize()"
_MEASURES = re.compile(
    r"(?i)(?<!cudnn\.)bench|latenc|throughput|(?:\b|_)fps\b|(?<!deep)speed|profil|timeit|(?:\b|_)ms\b"
    r"|/ ?s(?:ec\w*)?\b|per.sec"
)
"""How code says that it measures how fast something is."""


class UnsynchronizedTiming(Rule):
    """The clock is read before the device has done the work that is timed.

    ## What it does
    Reports a difference of two readings of `time.time()`, `perf_counter()` or `monotonic()` between which a model ran
    on an accelerator, if nothing has waited for the device by the second reading. It is a hint where nothing in the
    file says that it measures how fast something is (a benchmark, a latency, a throughput, `ms`): a time that a log
    shows beside the loss may be rough.

    ## Why it matters
    Calls that compute on an accelerator return at once; the work is queued. Without a wait, the clock shows how long
    Python took to queue it, often a tenth or a hundredth of the time that the device needs.

    ## Example
    ```python
    import time

    import torch
    from torch import nn

    def benchmark(inputs, device):
        model = nn.Linear(1024, 1024).to(device)
        inputs = inputs.to(device)
        start = time.perf_counter()
        for _ in range(100):
            model(inputs)
        print(time.perf_counter() - start)
    ```

    ## Use instead
    ```python
    import time

    import torch
    from torch import nn

    def benchmark(inputs, device):
        model = nn.Linear(1024, 1024).to(device)
        inputs = inputs.to(device)
        start = time.perf_counter()
        for _ in range(100):
            model(inputs)
        torch.cuda.synchronize()
        print(time.perf_counter() - start)
    ```

    ## When it stays silent
    - Something waits after the last call: `synchronize()`, `.item()`, `.cpu()`, `print(loss)`, or something that
      devlint cannot follow and that may wait.
    - A loop in between waits, or may wait, in every round: then little is left undone at its end.
    - The model is on the CPU, or nothing shows where it is.
    - The two readings are taken in different rounds of a loop.
    - Who selects the rule is told of a rough time that a module takes of its own layers.

    ## Fix safety
    Waiting for the device is unsafe, as it changes how the program runs; `torch.cuda.synchronize()` is only called
    where CUDA is available.

    ## References
    - [Asynchronous execution](https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution)
    """

    code = "DVL402"
    fixes = (Applicability.UNSAFE,)

    def judge(self, site: Timing) -> Reports:
        """A report for each time that was taken too early."""
        name = self.source.filename.replace("\\", "/").rpartition("/")[2]
        rough = _MEASURES.search(self.source.text) is None and _MEASURES.search(name) is None
        yield Report(
            "the clock is read before the device has done its work: the time is that of queueing it",
            label="the device may still be at work here",
            severity=Severity.INFO if rough else None,
            steps=(site.started, site.work),
            help=f"call `{_SYNCHRONIZE}` before reading the clock, at both ends",
            fix=self._fix(site),
            # a wait in every layer would cost more than a time is worth that nobody may look at
            asked=rough and site.scope.module,
        )

    def _fix(self, site: Timing) -> Fix | None:
        statement = statement_around(self.source, site.node)
        if statement is None or hasattr(statement, "body"):
            return None
        indent, _ = beside(self.source, self.source.span(statement))
        inner = f"{indent}\t" if indent.startswith("\t") else f"{indent}    "
        wait = f"if torch.cuda.is_available():\n{inner}{_SYNCHRONIZE}\n{indent}"
        imports, waiting = importing(self.source, "torch", site.node), put_before(self.source, statement, wait)
        return None if indent.strip() else fix_of("Wait for the device", imports, waiting)
