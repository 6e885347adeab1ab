"""DVL111: a question for an accelerator that is never asked."""

from __future__ import annotations

from devlint.rules.base import Applicability, Report, Reports, Rule, Severity
from devlint.rules.code import edits
from devlint.sites.devices import Mention

_WRONG = {"test": "always true", "switch": "neither `True` nor `False`"}
"""What a function is not, by what is made of it."""


class UncalledAvailabilityCheck(Rule):
    """`if torch.cuda.is_available:` asks whether the function exists, which is always true.

    ## What it does
    Reports `torch.cuda.is_available`, `torch.backends.mps.is_available`, `torch.accelerator.is_available` and other
    such questions where their truth is taken without a call: in `if`, `while`, `assert`, a ternary, `and`, `or` and
    `not`, as the condition of a skipped test, and as `pin_memory=`, `non_blocking=` or `enabled=`.

    ## Why it matters
    A function is always true. On a machine without an accelerator the wrong branch is taken, and what follows raises.
    Where torch insists on a bool, as `torch.autocast` does, it raises everywhere.

    ## Example
    ```python
    device = torch.device("cuda" if torch.cuda.is_available else "cpu")
    ```

    ## Use instead
    ```python
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    ```

    ## When it stays silent
    - The function is handed on, replaced in a test (`monkeypatch.setattr`), or compared: `is_available is not None`.
    - `hasattr(torch.cuda, "is_available")`.
    - It is what remains of an `or`: `check = check or torch.cuda.is_available`.

    ## Fix safety
    Adding `()` is safe.

    ## References
    - [torch.cuda.is_available](https://docs.pytorch.org/docs/stable/generated/torch.cuda.is_available.html)
    """

    code = "DVL111"
    severity = Severity.ERROR
    fixes = (Applicability.SAFE,)

    def judge(self, site: Mention) -> Reports:
        """A report where the truth of the function is taken for its answer."""
        if site.use not in _WRONG:
            return
        spelled = edits.short(self.source.segment(site.node), site.path)
        yield Report(
            f"{edits.with_path(spelled, site.path)} is a function, and {_WRONG[site.use]}: it is not called",
            label="never asked",
            help=f"call it: `{spelled}()`",
            fix=edits.fix_of("Call it", edits.put_after(self.source, site.node, "()"), safe=True),
        )
