"""DVL603: a GPU other than the first, chosen by a number in the code."""

from __future__ import annotations

from devlint.rules.base import Report, Reports, Rule, Severity
from devlint.rules.code import edits
from devlint.sites.devices import Numbered


class FixedGpuIndex(Rule):
    """The code asks for a GPU by a number that not every machine has.

    ## What it does
    Reports the second and later GPUs where they are literals: `.cuda(1)`, `.to("cuda:1")`, `torch.device("cuda", 1)`,
    `torch.cuda.set_device(1)`, `DataParallel(model, device_ids=[0, 1])`.

    ## Why it matters
    On a machine with one GPU it raises "invalid device ordinal". On one with more, the number is somebody's habit:
    which GPU is free is for whoever starts the program to say, with an option or with `CUDA_VISIBLE_DEVICES`.

    ## Example
    ```python
    if torch.cuda.is_available():
        torch.cuda.set_device(1)
    ```

    ## Use instead
    ```python
    import os

    import torch

    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    ```

    ## When it stays silent
    - The first GPU, `0`.
    - The code asked how many there are: `torch.cuda.device_count() > 1`.
    - The file spreads a model over several GPUs: it places things on another literal number, too.
    - Tests.
    - It is for those who select the rule: most such numbers are the author's own choice on the author's own machine.

    ## Fix safety
    There is no fix: which GPU is meant, only the author knows.

    ## References
    - [CUDA semantics](https://docs.pytorch.org/docs/stable/notes/cuda.html)
    - [torch.cuda.set_device](https://docs.pytorch.org/docs/stable/generated/torch.cuda.set_device.html)
    """

    code = "DVL603"
    severity = Severity.INFO
    hints = False

    def judge(self, site: Numbered) -> Reports:
        """A report for every number of a GPU that a machine may lack."""
        if site.index < 1 or site.scope.counted or site.scope.handler:
            return
        spread = site.others and not site.spelled.startswith("device_ids")
        if spread or edits.in_test(self.source, site.scope):
            return
        yield Report(
            f"`{edits.short(site.spelled, 'this')}` needs at least {site.index + 1} GPUs, "
            "and leaves no choice to whoever starts the program",
            label=f"GPU {site.index}",
            help="take the device from an option or, in a job of several processes, from `LOCAL_RANK`",
        )
