"""DVL606: a choice between CUDA and the CPU that knows no other accelerator."""

from __future__ import annotations

from collections.abc import Iterable

from devlint.finding import Applicability, Severity
from devlint.rules.base import Report, Rule
from devlint.rules.code import edits
from devlint.rules.code.imports import importing
from devlint.sites.devices import Alternative

_DEVICE = 'torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")'
_SINCE = (2, 7)


class CudaOnlyDeviceSelection(Rule):
    """The device is CUDA or the CPU: MPS, XPU and other accelerators are left unused.

    ## What it does
    Reports `"cuda" if torch.cuda.is_available() else "cpu"`, alone or within `torch.device(...)`.

    The rule is off. Switch it on for a project that is to run on every accelerator, and whose operations and dtypes do.

    ## Why it matters
    On a machine whose accelerator is MPS or XPU the code runs on the CPU, many times slower, and says nothing.

    ## Example
    ```python
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    ```

    ## Use instead
    ```python
    device = torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")
    ```

    ## When it stays silent
    - Another accelerator is asked for, too, or the choice hangs on more than the question for CUDA.
    - The code is for a torch before 2.7 (`target-torch`), which cannot ask for an accelerator that is there.

    ## Fix safety
    Unsafe: elsewhere the code may count on CUDA, on mixed precision in float16, or on float64, which MPS lacks. A
    string stays a string, but `"cuda:0"` loses its number.

    ## References
    - [torch.accelerator.current_accelerator](https://docs.pytorch.org/docs/stable/generated/torch.accelerator.current_accelerator.html)
    - [Device-agnostic code](https://docs.pytorch.org/docs/stable/notes/cuda.html)
    """

    code = "DVL606"
    severity = Severity.INFO
    default = False
    fixes = (Applicability.UNSAFE,)

    def judge(self, site: Alternative) -> Iterable[Report]:
        """A report for every choice that knows CUDA only."""
        if (self.target_torch or _SINCE) < _SINCE:
            return
        replaced = site.whole or site.node
        text = f"({_DEVICE}).type" if site.whole is None else edits.bracketed(self.source, replaced, _DEVICE)
        imports = importing(self.source, "torch", site.node)
        # more than a choice alone in `torch.device(...)` is let be
        alone = site.whole is None or (len(site.whole.args) == 1 and not site.whole.keywords)
        yield Report(
            "this choice knows CUDA and the CPU: MPS, XPU and other accelerators are left unused",
            label="CUDA or the CPU",
            help=f"use `{_DEVICE}` (torch 2.7)",
            fix=edits.fix_of("Use the current accelerator", self.replace(replaced, text), imports) if alone else None,
        )
