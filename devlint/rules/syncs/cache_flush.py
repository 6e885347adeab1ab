"""DVL404: giving cached memory back in every step."""

from __future__ import annotations

from devlint.rules.base import Applicability, Report, Reports, Rule, Severity, proof
from devlint.rules.code import edits
from devlint.rules.code.blocks import idle_statement, removal
from devlint.sites.devices import ApiCall

_COLLECTOR = "gc.collect"


class CacheFlushInLoop(Rule):
    """Cached memory is given back in every step of a loop, and has to be asked for again in the next one.

    ## What it does
    Reports `torch.cuda.empty_cache()`, its kin for other accelerators, and `gc.collect()` where every training or
    evaluation step calls them.

    ## Why it matters
    PyTorch keeps freed memory for the tensors to come. `empty_cache()` gives it back to the driver: it waits for the
    device, and the next step has to allocate anew, which is slow. It does not make more memory available to PyTorch.
    `gc.collect()` visits every object of the program.

    ## Example
    ```python
    def train(loader, model, loss_fn, optimizer):
        for images, labels in loader:
            loss = loss_fn(model(images), labels)
            loss.backward()
            optimizer.step()
            torch.cuda.empty_cache()
    ```

    ## Use instead
    ```python
    import torch

    def train(loader, model, loss_fn, optimizer):
        for images, labels in loader:
            loss = loss_fn(model(images), labels)
            loss.backward()
            optimizer.step()
    ```

    ## When it stays silent
    - Only some steps call it: under an `if`, or in an audit in fewer than every second one.
    - The call handles an exception, such as running out of memory, or may itself fail and be handled.
    - It stands between epochs, or outside of any loop.
    - Tests, which measure memory.
    - It is for those who select the rule, and for an audit: most calls are there on purpose, against fragmentation.

    ## Fix safety
    Removing the call is unsafe: another process on the same device may rely on the memory. `gc.collect()` is never
    removed.

    ## References
    - [torch.cuda.empty_cache](https://docs.pytorch.org/docs/stable/generated/torch.cuda.memory.empty_cache.html)
    - [Memory management](https://docs.pytorch.org/docs/stable/notes/cuda.html)
    """

    code = "DVL404"
    severity = Severity.INFO
    hints = False
    fixes = (Applicability.UNSAFE,)
    observed = True
    proof = proof.Traces(left=(proof.CALL,), confirm=(proof.CALL_IN_STEP,))

    def judge(self, site: ApiCall) -> Reports:
        """A report where every step makes the call."""
        if not (site.function.endswith(".empty_cache") or site.function == _COLLECTOR):
            return
        each_step = site.repeated and (site.measured is not None or (site.scope.step and not site.scope.sometimes))
        if not each_step or site.via or site.scope.handler or edits.in_test(self.source, site.scope):
            return
        collects = site.function == _COLLECTOR
        removed = removal(self.source, idle_statement(self.source, site.node))
        what = "visits every object of the program" if collects else "gives back memory that the next step needs again"
        yield Report(
            f"`{site.function}()` in every step {what}",
            label="called in every step",
            help="drop the call, or make it once an epoch" if collects else "drop the call: freed memory is used again",
            # what the collector frees may be large, and how many objects it visits nobody sees here
            fix=None if collects else edits.fix_of("Remove `empty_cache()`", removed),
        )
