"""DVL609: a name of torch.cuda where torch has one for every accelerator."""

from __future__ import annotations

from collections.abc import Iterable

from devlint import torch_api
from devlint.finding import Applicability
from devlint.rules.base import Report, Rule
from devlint.rules.code.edits import fix_of
from devlint.rules.portability.rewriting import edits_for
from devlint.sites.devices import Mention
from devlint.torch_api.rows import Api

_SILENT = frozenset({"import", "comparison"})


class CudaOnlyApi(Rule):
    """A name of `torch.cuda` is used where torch has one that serves every accelerator.

    ## What it does
    Reports every use of a function or class of `torch.cuda` that has an equivalent for any accelerator in the torch
    that the code is for (`target-torch`, or the newest): `torch.cuda.synchronize()` is
    `torch.accelerator.synchronize()`, `torch.cuda.mem_get_info()` is `torch.accelerator.get_memory_info()`,
    `torch.cuda.Event()` is `torch.Event()`,
    `with torch.cuda.device(0):` is `with torch.accelerator.device_index(0):`, `torch.cuda.manual_seed_all(0)` is
    `torch.manual_seed(0)`. What has no equivalent, such as `torch.cuda.get_device_name()`, is let be.

    The rule is off. A project that is to run on more than CUDA switches it on, and for the lines of a change only
    where there is much of the old: with `--extend-select DVL609 --since origin/main`.

    ## Why it matters
    Code that speaks to `torch.cuda` leaves XPU, MPS and every other accelerator unused, function by function.

    ## Example
    ```python
    def wait():
        torch.cuda.synchronize()
    ```

    ## Use instead
    ```python
    def wait():
        torch.accelerator.synchronize()
    ```

    ## When it stays silent
    - There is no equivalent, or none in the oldest torch that the code is for.
    - Imports (their uses are reported), type tests, and code for the sake of another version of torch.

    ## Fix safety
    Where `target-torch` says that the new name is there, safe for `synchronize`, `current_device` and `set_device`,
    which need a device on either side; unsafe for the rest:
    `torch.Event` and `torch.Stream` are other classes, which stay CUDA's where the file goes on to ask for those;
    `torch.manual_seed` seeds the CPU, too, and is left out where the same seed is set already. `empty_cache()` and the
    functions that ask for memory do nothing without CUDA but raise without an accelerator: they are rewritten only
    where one is available, or get the question for it. `is_available()` and `device_count()` are rewritten last, where
    nothing around them is bound to CUDA any more, so that no `"cuda"` is left to hang on any accelerator. Nothing is
    rewritten in a function that names other accelerators, which has its branch for CUDA, in such a branch
    (`if device.type == "cuda":`), or with arguments that the other name would not understand.

    ## References
    - [torch.accelerator](https://docs.pytorch.org/docs/stable/accelerator.html)
    - [torch.Event](https://docs.pytorch.org/docs/stable/generated/torch.Event.html)
    - [torch.Stream](https://docs.pytorch.org/docs/stable/generated/torch.Stream.html)
    """

    code = "DVL609"
    fixes = (Applicability.UNSAFE,)
    default = False

    def judge(self, site: Mention) -> Iterable[Report]:
        """A report for every use of a name that has an equivalent."""
        if site.shim or site.use in _SILENT:
            return
        for row in torch_api.portable_forms(site.path):
            if not row.replacement or not row.offered(self.target_torch):
                continue
            yield Report(
                site.node,
                f"`{site.path}` serves CUDA only: `{row.replacement}` serves every accelerator",
                label="CUDA only",
                help=_help(site, row),
                fix=fix_of(
                    f"Use `{row.replacement}`",
                    edits_for(self.source, site, row),
                    safe=row.safe and self.can_count_on(row.since),
                ),
            )


def _help(site: Mention, row: Api) -> str:
    since = "" if row.since < (2, 0) else f" (torch {row.since[0]}.{row.since[1]})"
    text = f"use `{row.replacement}`{since}"
    if row.note:
        return f"{text}: {row.note}"
    if row.needs and not (row.raises or site.scope.guarded or site.scope.required):
        return f"{text}, after `torch.accelerator.is_available()`: it raises where there is none"
    return text
