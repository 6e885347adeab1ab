"""DVL605: a function of torch.cuda that raises on a machine without CUDA, and nothing asks whether it is there."""

from __future__ import annotations

import ast

from devlint import torch_api
from devlint.flow.catalog.concepts import TENSOR
from devlint.rules.base import Report, Reports, Rule, Severity
from devlint.rules.code import edits
from devlint.rules.code.blocks import keyword_of
from devlint.sites.devices import Mention
from devlint.torch_api import rows

_PINNING = "pin_memory"


class UnguardedCudaApi(Rule):
    """A function that raises without CUDA is called, and nothing asks first whether CUDA is there.

    ## What it does
    Reports calls such as `torch.cuda.synchronize()`, `torch.cuda.current_device()`, `torch.cuda.get_device_name()`,
    `torch.cuda.set_device(0)`, `torch.cuda.reset_peak_memory_stats()`, `torch.cuda.Event()` and `torch.cuda.Stream()`,
    and memory that is pinned by hand (`x.pin_memory()`, `torch.empty(n, pin_memory=True)`), where nothing asks for an
    accelerator. Of several in a row the first is reported: without CUDA the others are not reached.

    The rule is off, since much code is only called where CUDA was chosen, which the code itself does not say. A project
    that is to run without CUDA, too, switches it on.

    ## Why it matters
    On a machine without CUDA they raise "Torch not compiled with CUDA enabled" and the like, often only for the sake of
    a time or a name that is to be printed. Their neighbours `torch.cuda.empty_cache()`, `memory_allocated()`,
    `manual_seed()`, `device_count()` and `is_available()` do no harm there, so one gets used to it.

    ## Example
    ```python
    def timed(step):
        torch.cuda.synchronize()
        return step()
    ```

    ## Use instead
    ```python
    def timed(step):
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        return step()
    ```

    ## When it stays silent
    - The code runs only where an accelerator is available, or a failure is handled.
    - An earlier call on the way has the same need.
    - The function, its class or its file is about CUDA by its name, or its code is there for another version of torch.
    - Inside methods called `pin_memory`.
    - `DataLoader(pin_memory=True)`, which only warns.

    ## Fix safety
    There is no fix: whether to ask, or to ask for any accelerator (`torch.accelerator`), is the author's choice.

    ## References
    - [torch.cuda](https://docs.pytorch.org/docs/stable/cuda.html)
    - [torch.accelerator](https://docs.pytorch.org/docs/stable/accelerator.html)
    """

    code = "DVL605"
    severity = Severity.INFO
    default = False

    def judge(self, site: Mention) -> Reports:
        """A report for the first call on each way that needs CUDA."""
        if site.call is None or site.shim:
            return
        scope = site.scope
        cared_for = scope.guarded or scope.handler or scope.required or scope.function == _PINNING
        if cared_for or edits.is_about_cuda(self.source, scope):
            return
        row = next((row for row in torch_api.portable_forms(site.path) if row.raises), None)
        given = keyword_of(site.call, row.argument) if row is not None and row.argument else None
        asked = isinstance(given, ast.Constant) and given.value is True
        if row is None or (row.argument and not asked):
            return
        pinned = _PINNING in (row.argument, site.path.rpartition(".")[2])
        called = f"`{row.argument}=True`" if row.argument else f"`{site.path.removeprefix(TENSOR)}()`"
        yield Report(
            f"{called} raises where {'there is no accelerator' if pinned else 'CUDA is not available'}",
            node=site.call,
            label="pinned for an accelerator" if pinned else "needs CUDA",
            help=_help(row, pinned, self.target_torch),
        )


def _help(row: rows.Api, pinned: bool, target: rows.Version | None) -> str:
    if pinned:
        return "pin only if `torch.accelerator.is_available()`, or `torch.cuda.is_available()` before torch 2.6"
    if row.needs and row.offered(target):
        return (
            f"ask `torch.cuda.is_available()` first; `{row.replacement}()`, after `torch.accelerator.is_available()`, "
            "serves every accelerator"
        )
    return "ask `torch.cuda.is_available()` first"
