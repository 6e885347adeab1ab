"""DVL107: an array is made of a tensor that is on an accelerator."""

from __future__ import annotations

import ast
import re

from devlint.device import Role
from devlint.flow.catalog.concepts import METHOD
from devlint.rules.base import Applicability, Fix, Report, Reports, Rule, Severity
from devlint.rules.code.blocks import function_at, method_of, receiver
from devlint.rules.code.device_candidates import left_to_default
from devlint.rules.code.edits import fix_of, on_samples, shown
from devlint.rules.placement.host.transfer_to_host import absence, fetched
from devlint.sites.base import Operand
from devlint.sites.placement import HostRead
from devlint.source.file_kinds import is_for_export
from devlint.source.syntax import walk

_JOINS = re.compile(r"\.(?:concatenate|\w*stack|append|block)$")
"""Functions of NumPy that join arrays of at least one dimension."""


class NumpyOnAccelerator(Rule):
    """A tensor on an accelerator is handed to NumPy, or to a library that makes arrays of what it gets.

    ## What it does
    Reports `.numpy()`, functions of NumPy, plots of Matplotlib, data frames of pandas and calls of scikit-learn with a
    tensor that is on a device which the code chose. It is a warning where that is the CPU unless the caller names
    another one, where the tensor is wherever the module is, or an argument in code that cares for devices; and a hint
    where a plain function computes it from its arguments, or from what a call of others made of them, or where it is
    copied to the host only if it is on CUDA, or on one other kind of accelerator. Who selects the rule is told of
    `x.max().numpy()` beside `x.min().cpu().numpy()`, and of the same in other methods of a class.

    ## Why it matters
    NumPy reads the host's memory. On an accelerator the call raises "can't convert cuda:0 device type tensor to numpy.
    Use Tensor.cpu() to copy the tensor to host memory first"; on a machine without one it works.

    ## Example
    ```python
    def predict(x, device):
        model = nn.Linear(8, 2).to(device)
        return model(x.to(device)).detach().numpy()
    ```

    ## Use instead
    ```python
    def predict(x, device):
        model = nn.Linear(8, 2).to(device)
        return model(x.to(device)).detach().cpu().numpy()
    ```

    ## When it stays silent
    - The file has the training loop, and never names a device, or so it is with the whole project: it is for the CPU,
      and who selects the rule is told.
    - The tensor was brought to the CPU before, if only on some path: `.cpu()`, `.to("cpu")`, `.tolist()`, `.item()`.
    - `.numpy(force=True)`, which copies from any device.
    - Where it is is not known, or a condition says that there is no accelerator, or that it is not there:
      `if not x.is_cuda`. Who selects the rule is told of what a network may have computed: `x.detach().numpy()`.
    - It is the device of an object that was made without naming one, and whose class chooses none.
    - Matplotlib takes a limit by `.item()`: `vmin`, `vmax`.
    - The function asks the tensor first, and NumPy never reads it: `np.shape(x)`, `np.mean(x)`.
    - A plain function is given the tensor: what it asks of its caller is a tensor of the CPU. Who selects the rule is
      told, if annotations or the code say that it is a tensor.
    - It is only probably on the device of the network of somebody else that returned it, which may return an array: a
      warning for those who select the rule.
    - The same expression moves the tensor where the caller says, `x.to(device).numpy()` of an argument `device`: that
      can be nothing but the CPU. Who selects the rule is told.
    - The code runs in the host's part of a program: the methods of a dataset, a `collate_fn`. Who selects the rule is
      told of a transform of samples, in a file that is called so (`transforms.py`, `datasets/`).
    - A failure is handled by the code around it.

    ## Fix safety
    Safe: `.cpu()` is added, or `.detach().cpu()` where the tensor may require gradients, since `.numpy()` would refuse
    that next. Unsafe where it is not proven that the value is a tensor. There is no fix for a list of tensors.

    ## References
    - [torch.Tensor.numpy](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.numpy.html)
    - [torch.Tensor.cpu](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.cpu.html)
    """

    code = "DVL107"
    raising = True
    hints = False
    accelerated = True
    severity = Severity.ERROR
    fixes = (Applicability.SAFE, Applicability.UNSAFE)

    def judge(self, site: HostRead) -> Reports:
        """A report for the first tensor of the call that is away from the host, and one fix for all of them."""
        if site.kind in ("one kind", "like", "graph") and not site.scope.handler:
            yield self._apart(site, site.values[0])
        if site.kind != "array":
            return
        away = [(operand, found) for operand in site.values if (found := absence(site, operand)) is not None]
        if not away:
            return
        operand, first = max(away, key=lambda pair: pair[1].severity)
        subject = f"a tensor in {shown(operand.text)}" if site.several else shown(operand.text)
        method = site.reader.removeprefix(METHOD)
        reader = f"`.{method}()`" if method != site.reader else f"`{site.reader}`"
        # whoever names no device gets an array
        default = left_to_default(operand.device.text, site.node, function_at(self.source, site.node))
        forward = site.scope.module and site.scope.function == "forward" and first.severity > Severity.INFO
        consequence = "this raises" if operand.device.accelerates() else "this raises on an accelerator"
        yield Report(
            f"{subject} {first.place}, and {reader} reads the host's memory alone; {consequence}",
            label="needs a tensor on the CPU",
            severity=min(first.severity, Severity.WARNING) if default else first.severity,
            steps=operand.story,
            help=_help(site),
            # but for the forward of a network, what reads the host's memory is called with all of it on the host; what
            # somebody else's network returns may be an array
            asked=not (forward or any(_is_moved(operand) for operand, _ in away))
            or not any(operand.device.known for operand, _ in away)
            or all(self._is_told_the_host(operand) for operand, _ in away)
            or (self._is_on_the_host(site) and not any(_is_moved(operand) for operand, _ in away)),
            fix=None if site.several else self._fix(site, [operand for operand, _ in away]),
            assumed=first.assumed,
        )

    def _apart(self, site: HostRead, operand: Operand) -> Report:
        """A report of a tensor of which other lines say that it need not be on the CPU."""
        if site.kind != "one kind":
            why = "as the like of it that is copied to the host first"
            if site.kind == "graph":
                why = "where what has computed it, and its graph, may be"
            return Report(
                f"{shown(operand.text)} may be on an accelerator, {why}, and `.numpy()` reads the host's memory alone",
                label="needs a tensor on the CPU",
                severity=Severity.INFO,
                steps=operand.story,
                help="copy it to the host first: `.cpu()`",
                asked=True,
                fix=self._fix(site, [operand]),
            )
        # it is brought to the host from one kind of accelerator alone
        return Report(
            f"{shown(operand.text)} is copied to the host from one kind of accelerator only; this raises on others",
            label="needs a tensor on the CPU",
            severity=Severity.INFO,
            steps=operand.story,
            help="call `.cpu()` in any case: it returns a tensor of the CPU as it is",
        )

    def _is_told_the_host(self, operand: Operand) -> bool:
        """Whether a tensor is moved where the caller says, and read at once: no caller can say an accelerator."""
        function = function_at(self.source, operand.node)
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            return False
        taken = {part.arg for part in walk(function.args) if isinstance(part, ast.arg)}
        node: ast.AST | None = operand.node
        while node is not None:
            if isinstance(node, ast.Call) and method_of(node) == "to" and node.args:
                return ast.unparse(node.args[0]) in taken
            node = node.value if isinstance(node, ast.Attribute) else receiver(node)
        return False

    def _is_on_the_host(self, site: HostRead) -> bool:
        """Whether code is for what is done on the host: samples, exports."""
        return on_samples(self.source, site.scope) or is_for_export(self.source.filename)

    def _fix(self, site: HostRead, operands: list[Operand]) -> Fix | None:
        fetches = [fetched(self.source, operand, site.reader.startswith(METHOD)) for operand in operands]
        proven = all(operand.certain and operand.device.known for operand in operands)
        # a tensor by what is done with it may still be one of another library
        proven = proven and not any(map(_is_given, operands))
        return fix_of("Copy the tensor to the host", *(edits or None for edits in fetches), safe=proven)


def _help(site: HostRead) -> str:
    if not site.several:
        return "copy it to the host first: `.cpu()`"
    # what joins arrays takes no numbers
    joins = _JOINS.search(site.reader) is not None
    return "copy each to the host first: `.cpu()`" if joins else "put numbers into the list: `.item()`"


def _is_moved(operand: Operand) -> bool:
    """Whether a tensor may be on an accelerator otherwise than by being where a caller keeps it, or its module."""
    leaves = operand.device.leaves()
    return any(leaf.role in (None, Role.DEVICE) and leaf.accelerates() is not False for leaf in leaves)


def _is_given(operand: Operand) -> bool:
    """Whether a tensor may be where a caller keeps it."""
    return any(leaf.role is Role.INPUT for leaf in operand.device.leaves())
