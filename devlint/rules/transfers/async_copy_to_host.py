"""DVL205: reading a copy to the host that may not have arrived."""

from __future__ import annotations

import ast

from devlint.device import Kind, Role
from devlint.rules.base import Applicability, Report, Reports, Rule, Severity, proof
from devlint.rules.code.blocks import keyword_of
from devlint.rules.code.edits import fix_of, quoted, without_argument
from devlint.sites.transfers import Transfer

_FLAG = "non_blocking"


class AsyncCopyToHost(Rule):
    """A tensor that is being copied to the host asynchronously is read before anything has waited for it.

    ## What it does
    Reports `.to("cpu", non_blocking=True)` whose result is read, by `.numpy()`, `.item()`, an operation or `print`,
    with nothing in between that waits for the device.

    ## Why it matters
    The call returns at once, and the device fills in the values later. Until something waits for that, the host tensor
    holds whatever was in its memory: results are wrong now and then, and nothing raises.

    ## Example
    ```python
    def sample(count, device):
        noise = torch.randn(count, device=device)
        values = noise.to("cpu", non_blocking=True)
        return values.numpy()
    ```

    ## Use instead
    ```python
    def sample(count, device):
        noise = torch.randn(count, device=device)
        values = noise.to("cpu")
        return values.numpy()
    ```

    ## When it stays silent
    - Any call that may wait stands between the copy and the read: `synchronize()`, `wait()`, a function of the
      program's own.
    - The result is only kept or returned.
    - The source is on the CPU, or nothing is known of it. Where it comes from an argument, it is a warning.

    ## Fix safety
    Removing `non_blocking=True` is safe: the call then waits for its copy.

    ## References
    - [pin_memory and non_blocking](https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html)
    - [torch.Tensor.to](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to.html)
    """

    code = "DVL205"
    severity = Severity.ERROR
    fixes = (Applicability.SAFE,)
    observed = True
    proof = proof.Traces(left=(proof.DOWNLOAD,), confirm=(proof.READ_TOO_EARLY,))

    def judge(self, site: Transfer) -> Reports:
        """A report where a copy's result is read too early."""
        if site.unwaited is None or not site.non_blocking:
            return
        source = site.value.device
        if site.target is None or site.target.kind is not Kind.CPU or not source.known or source.accelerates() is False:
            return
        guessed = site.value.derived or any(leaf.role is Role.INPUT for leaf in source.leaves())
        text = quoted(site.value.text, "")
        what = f"the copy of {text}" if text else "this copy"
        asked = not site.via and isinstance(site.node, ast.Call) and keyword_of(site.node, _FLAG) is not None
        waiting = without_argument(self.source, site.node, _FLAG)
        yield Report(
            f"{what} to the CPU may still be under way when it is read: nothing waits for it",
            label="returns before the values are there",
            severity=Severity.WARNING if guessed else None,
            steps=(site.unwaited,),
            help="leave `non_blocking` out, or wait: `torch.cuda.synchronize()`",
            fix=fix_of("Remove `non_blocking`", waiting if asked else None, safe=True),
        )
