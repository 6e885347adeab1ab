"""DVL608: GPUs that are hidden from the process when it has looked already."""

from __future__ import annotations

from devlint.rules.base import Report, Reports, Rule, Severity
from devlint.rules.code import edits
from devlint.sites.devices import Visible
from devlint.source.file_kinds import is_notebook


class VisibleDevicesTooLate(Rule):
    """`CUDA_VISIBLE_DEVICES` is set where it has no effect any more, or soon will have none.

    ## What it does
    Reports `os.environ["CUDA_VISIBLE_DEVICES"] = ...` after a use of CUDA in the same file and, as an info, after the
    import of torch.

    ## Why it matters
    The driver reads the variable once, when it is first asked for GPUs: by `torch.cuda.is_available()`, by the first
    tensor on CUDA, or by a library that is imported. What is set later changes nothing: the process goes on with the
    GPUs that it saw, and may take one that somebody else uses. (`torch.cuda.device_count()` alone asks NVML, which
    settles nothing.)

    ## Example
    ```python
    import os

    import torch

    print(torch.cuda.is_available())
    os.environ["CUDA_VISIBLE_DEVICES"] = "1"
    ```

    ## Use instead
    ```python
    import os

    os.environ["CUDA_VISIBLE_DEVICES"] = "1"

    import torch

    print(torch.cuda.is_available())
    ```

    ## When it stays silent
    - The file starts other processes, for which the variable may be meant; the function puts back what it found.
    - Tests. In notebooks, whose cells are run in any order, it is a hint.

    ## Fix safety
    There is no fix: the assignment belongs before the first use, or better into the command that starts the program.

    ## References
    - [CUDA semantics](https://docs.pytorch.org/docs/stable/notes/cuda.html)
    - [CUDA environment variables](https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#cuda-environment-variables)
    """

    code = "DVL608"
    hints = False

    def judge(self, site: Visible) -> Reports:
        """A report where the variable is set after CUDA was used, or may have been."""
        if site.spawns or edits.in_test(self.source, site.scope):
            return
        step, late = site.after or site.imported, site.after is not None
        if step is None:
            return
        effect = "no effect here: CUDA is in use already" if late else "an effect only as long as nothing has used CUDA"
        yield Report(
            f"`{site.name}` has {effect}",
            label="too late" if late else "after the import of torch",
            # the cells of a notebook are run in any order
            severity=None if late and not is_notebook(self.source.filename) else Severity.INFO,
            steps=(step,),
            help=("delete the line, which changes nothing; to choose a GPU, " if late else "")
            + "set it before torch is imported, or in the command that starts the program",
        )
