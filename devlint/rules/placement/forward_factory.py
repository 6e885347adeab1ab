"""DVL103: a tensor created on the default device, which then meets an argument."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from devlint.device import Role
from devlint.finding import Applicability, Fix, Severity
from devlint.rules.base import Report, Rule
from devlint.rules.edits import code, parsed, with_keyword
from devlint.rules.placement.meeting import MODULE, Meeting, beside, meetings, shown, takes_device
from devlint.sites import Forward, Operand, Operation, Site, Step


class ForwardFactory(Rule):
    """A tensor created on the default device meets a tensor that is wherever the caller keeps it.

    ## What it does
    Reports a factory call without `device=` (`torch.zeros`, `torch.arange`, a module built on the fly) whose result
    meets an argument of the function, or a parameter or submodule of the module, that nobody here placed. It is a
    warning in the methods of a module and in functions that place other tensors, and a hint in plain functions.

    ## Why it matters
    A factory without `device=` creates on the CPU, while the arguments follow the module to the accelerator: the
    function works in every test on a CPU and raises on the first accelerator.

    ## Example
    ```python
    import torch
    from torch import nn

    class Noise(nn.Module):
        def forward(self, x):
            noise = torch.randn(x.shape)
            return x.clamp(0, 1) + noise
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn

    class Noise(nn.Module):
        def forward(self, x):
            noise = torch.randn(x.shape, device=x.device)
            return x.clamp(0, 1) + noise
    ```

    ## When it stays silent
    - `device=` is given, or the tensor follows another one: `zeros_like`, `x.new_zeros`, `.to(x.device)`,
      `.type_as(x)`.
    - The result is 0-dim, or used for its shape, as an index, on the CPU, or as `lengths` of
      `pack_padded_sequence`.
    - A default device is set: `torch.set_default_device`, `with torch.device(...)`.
    - The function moves its arguments to a device of its own; DVL101 tells about those that it forgot.

    ## Fix safety
    Adding `device=` is unsafe: random numbers are drawn from another generator on the accelerator, and everything
    else that the tensor meets has to be there too. There is no fix for constructors without `device=`
    (`torch.FloatTensor`, `from_numpy`), nor where `generator=` ties the call to the CPU.

    ## References
    - [CUDA semantics: device-agnostic code](https://docs.pytorch.org/docs/stable/notes/cuda.html#device-agnostic-code)
    """

    code = "DVL103"
    name = "forward-factory-without-device"
    severity = Severity.WARNING
    sites = (Forward, Operation)

    def judge(self, site: Site) -> Iterable[Report]:
        """One report per creation that meets a caller's tensor at this place."""
        if not isinstance(site, Forward | Operation):
            return
        for meeting in meetings(site):
            if meeting.creation is None:
                continue
            target = _caller(site) or beside(meeting.other, site.scope)
            yield Report(
                meeting.creation,
                f"{shown(meeting.stray.factory)} creates on the CPU, but the result meets {_party(meeting.other)}; "
                "this raises when that is an accelerator",
                label="created on the default device, the CPU",
                severity=meeting.severity,
                steps=(Step(site.node, f"meets {shown(meeting.other.text)} here"),),
                help=_help(meeting, target),
                fix=self._fix(meeting, target),
            )

    def _fix(self, meeting: Meeting, target: str) -> Fix | None:
        node = meeting.creation
        if not isinstance(node, ast.Call) or not target or not _placeable(meeting):
            return None
        import libcst as cst

        call = parsed(self.source, node)
        if not isinstance(call, cst.Call):
            return None
        edit = self.replace(node, code(with_keyword(call, "device", target)))
        return Fix(f"Add `device={target}`", (edit,), Applicability.UNSAFE)


def _placeable(meeting: Meeting) -> bool:
    """Whether ``device=`` can be added to the creation: nothing else in the call says where it creates."""
    keywords = meeting.creation.keywords if isinstance(meeting.creation, ast.Call) else []
    tied = any(keyword.arg in (None, "device", "generator", "out") for keyword in keywords)
    return not tied and meeting.stray.role != MODULE and takes_device(meeting.stray.factory)


def _help(meeting: Meeting, target: str) -> str:
    if not target:
        return f"create it on the device of {shown(meeting.other.text)}"
    if _placeable(meeting):
        return f"create it there: `{meeting.stray.factory}(..., device={target})`"
    return f"move it there: `.to({target})`"


def _party(operand: Operand) -> str:
    if operand.text == operand.device.text:
        return f"{shown(operand.text)}, which is where the caller keeps it"
    return f"{shown(operand.text)}, which is on {operand.device}"


def _caller(site: Forward | Operation) -> str:
    """The device of an argument that takes part; empty where none does."""
    operands = site.inputs if isinstance(site, Forward) else site.operands
    return next((beside(operand, site.scope) for operand in operands if operand.device.role is Role.INPUT), "")
