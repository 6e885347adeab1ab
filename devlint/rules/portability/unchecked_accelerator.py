"""DVL607: the current accelerator, taken for granted."""

from __future__ import annotations

import ast
import re

from devlint.rules.base import Applicability, Report, Reports, Rule, Severity
from devlint.rules.code import edits
from devlint.rules.code.imports import importing
from devlint.sites.devices import Current

_CHECKED = "torch.accelerator.current_accelerator(check_available=True)"
_BEFORE = "torch.accelerator.current_accelerator() if torch.accelerator.is_available()"
_SINCE = (2, 7)
_RUNS_WITHOUT = re.compile(r"""["']cpu\b|\bis_(?:\w+_)?available\(""")
"""How a file says that there may be no accelerator: it names the CPU as a place, or asks."""
_OF_CUDA = re.compile(r"""\btorch\.cuda\b|["']cuda\b""")


class UncheckedAccelerator(Rule):
    """`torch.accelerator.current_accelerator()` is used, but there may be none, or none that works.

    ## What it does
    Reports `torch.accelerator.current_accelerator()` where its result is used as a device, or an attribute of it is
    read, and nothing asks whether there is one. It is a hint in a file that never names the CPU as a device, nor asks
    what is available: who needs an accelerator anyway only gets another error.

    ## Why it matters
    The function tells which accelerator torch was *built* for. Without one it returns `None`: `.type` raises an
    AttributeError, and `x.to(None)` leaves `x` where it is. On a build for CUDA it returns `cuda`, whether or not there
    is a GPU, and the first tensor fails. With `check_available=True` it returns `None` in that case, too, which is
    still no device to read a `.type` from.

    ## Example
    ```python
    device = torch.accelerator.current_accelerator().type
    ```

    ## Use instead
    ```python
    device = (torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")).type
    ```

    ## When it stays silent
    - The code runs only where an accelerator is available, or a failure is handled.
    - The file uses CUDA besides, and shows in no place that it may run without: then it is for those who select the
      rule, since falling back to the CPU only moves the failure.
    - The result is asked for being true, or compared with `None`, somewhere.
    - With `check_available=True` the result is only used as a device: without an accelerator, `x.to(None)` does
      nothing.

    ## Fix safety
    Falling back to the CPU is safe: where there is an accelerator, nothing changes. The fix asks
    `torch.accelerator.is_available()`, or, where `target-torch` is 2.7 or newer, for `check_available=True`.

    ## References
    - [torch.accelerator.current_accelerator](https://docs.pytorch.org/docs/stable/generated/torch.accelerator.current_accelerator.html)
    """

    code = "DVL607"
    fixes = (Applicability.SAFE,)

    def judge(self, site: Current) -> Reports:
        """A report for every use of an accelerator that may not be there."""
        if site.scope.handler:
            return
        result = "is `None` without an accelerator" + ("" if site.asked else ", or names one that may not work")
        checked = f"{_CHECKED} or" if self.can_count_on(_SINCE) else f"{_BEFORE} else"
        checked += ' torch.device("cpu")'
        instead = edits.bracketed(self.source, site.node, checked)
        edit = self.replace(site.node, instead) if isinstance(site.node, ast.Call) else None
        imports = importing(self.source, "torch", site.node)
        needed = not _RUNS_WITHOUT.search(self.source.text)
        yield Report(
            f"`current_accelerator({'check_available=True' if site.asked else ''})` {result}",
            label="perhaps `None`",
            severity=Severity.INFO if needed or edits.in_test(self.source, site.scope) else None,
            steps=(site.use,),
            help=f"fall back to the CPU: `{checked}`",
            fix=edits.fix_of("Fall back to the CPU", edit, imports, safe=True),
            asked=needed and _OF_CUDA.search(self.source.text) is not None,
        )
