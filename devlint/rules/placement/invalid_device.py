"""DVL112: something that is no device, where torch takes one."""

from __future__ import annotations

import ast

from devlint.rules.base import Applicability, Fix, Report, Reports, Rule, Severity
from devlint.rules.code import edits
from devlint.rules.code.blocks import method_of
from devlint.rules.code.device_choice import is_for_cuda
from devlint.sites.devices import DeviceArgument

_MESSAGES = {
    "name": "{given} is no device of torch: this raises",
    "range": "{given} has an index beyond 127, which torch takes for another one without a word",
    "bool": "{given} is no device, which `{role}` takes first: this raises",
    "number": "`map_location` takes no number: {given} raises",
    "none": "`torch.device` takes no `None`: it raises",
    "module": "{given} is a module of torch, and no device: this raises",
    "scope": "{given} makes a context manager, and no device: this raises",
    "index": "{given} is an index, which is -1 for a tensor on the CPU: this raises there",
    "object": "{given} is a `torch.device`: `device_type` takes a string, and raises",
    "legacy": "`{function}` makes tensors on the CPU only: it raises where {given} is an accelerator",
    "position": "`{function}` takes a device by its name alone: {given} raises here",
    "unknown": "`{role}` takes no {given}: it raises",
    "second": "{given} is no dtype, which `.to` takes second: it raises",
    "cpu": "`.cuda` takes no {given}: it raises",
    "call": "{given} is a module and cannot be called: it raises",
}
_HELP = {
    "name": "torch's devices are called `cpu`, `cuda` (with ROCm, too), `mps`, `xpu`, ..., with `:0` for an index",
    "range": "name a device that exists",
    "bool": "say what it is: `non_blocking=`",
    "number": 'name the device: `f"cuda:{index}"`',
    "none": "leave `torch.device` out: `None` is taken wherever a device is optional",
    "module": 'name the device: `"cuda"`',
    "scope": 'name the device: `torch.device("cuda", index)`',
    "index": "use `.device`",
    "object": "use its `.type`",
    "legacy": "use `torch.tensor(..., device=...)` for data, or `torch.empty(..., device=...)` for a size",
    "position": "say what it is: `device=`",
    "unknown": 'leave it out, or use `.to("cpu", ...)`',
    "second": "say what it is: `non_blocking=`",
    "cpu": "use `.cpu()`, or `.to(...)`",
    "call": 'name the device: `torch.device("cuda")`',
}


class InvalidDeviceValue(Rule):
    """What is passed as a device is none, so that the call raises.

    ## What it does
    Reports, where torch takes a device: strings that name none (`"gpu"`, `"CUDA"`, `"cuda0"`, `"cuda:-1"`, `"cuda: 0"`,
    `"rocm"`), booleans (`x.cuda(True)`), `torch.device(None)`, `torch.cuda`, `torch.cuda.device(0)`, which is a context
    manager, and `x.get_device()`, which is -1 on the CPU. Also `torch.autocast(x.device)`, which wants
    `x.device.type`; `torch.FloatTensor(..., device=device)`, which takes the CPU only; `x.cpu(non_blocking=True)`;
    `x.to(device, True)`; `torch.zeros((2, 3), x.device)`; `x.cuda("cpu")`; `torch.load(..., map_location=0)`; and
    `torch.cuda("...")`.

    ## Why it matters
    All of them raise, often only on a machine with an accelerator, where nobody tests. An index beyond 127
    (`"cuda:128"`) does not raise: torch keeps it in 8 bits, and takes it for another one.

    ## Example
    ```python
    def noise(n):
        return torch.randn(n, device="gpu")
    ```

    ## Use instead
    ```python
    def noise(n, device):
        return torch.randn(n, device=device)
    ```

    ## When it stays silent
    - Names that torch or its best known extensions know: `npu`, `hpu`, `xla`, `mps`, `meta`, `xpu`, `mtia`,
      `privateuseone`; others, which an extension may bring; and all, where the file calls
      `rename_privateuse1_backend`.
    - Ranks and other numbers, which are indices of the current accelerator.
    - `x.cpu(*args)`, which hands on what may be nothing.
    - The `device=` of anything but torch's own functions and methods, as in `video.shape(device="gpu")`, and `.to(...)`
      of what is not proven to be a tensor or a module.
    - `x.get_device()` as what `.cuda()` is given, where the code runs only where there is an accelerator, or where it
      asks whether it is -1; in files for CUDA alone, which never ask which accelerator there is, it is for those who
      select the rule.

    ## Fix safety
    Safe: `x.get_device()` becomes `x.device`, a device for `device_type` gets `.type`, `True` for a device becomes
    `non_blocking=True`, a device at the end of the arguments gets its name, and what `.cpu()` does not take is left
    out. What a wrong name was meant to be is not guessed.

    ## References
    - [torch.device](https://docs.pytorch.org/docs/stable/tensor_attributes.html#torch.device)
    - [torch.autocast](https://docs.pytorch.org/docs/stable/amp.html#torch.autocast)
    - [torch.Tensor.to](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to.html)
    """

    code = "DVL112"
    severity = Severity.ERROR
    fixes = (Applicability.SAFE,)

    def judge(self, site: DeviceArgument) -> Reports:
        """A report for each argument that is no device."""
        # `.cuda()` takes no other device, so that the CPU is no question there
        if site.problem == "index" and (site.scope.guarded or method_of(site.call) == "cuda"):
            return
        function = edits.short(self.source.segment(site.call.func), "the constructor")
        # under another name, what that holds
        written = site.text if site.problem in ("name", "range") else self.source.segment(site.node)
        if site.problem == "unknown":
            names = (keyword.arg for keyword in site.call.keywords if keyword.value is site.node and keyword.arg)
            written = next((f"{name}=" for name in names), written)
        given = f"`{edits.short(written, 'what is given')}`"
        yield Report(
            _MESSAGES[site.problem].format(given=given, role=site.role, function=function),
            label="no device",
            severity=Severity.WARNING if site.problem in ("index", "range") else None,
            help=_HELP[site.problem],
            fix=self._fix(site),
            # where no accelerator is, as in most tests, all of these are what they are meant to be
            asked=(site.problem == "index" and is_for_cuda(self.source)) or edits.in_test(self.source, site.scope),
        )

    def _fix(self, site: DeviceArgument) -> Fix | None:
        title, edit = "", None
        if site.problem == "index" and isinstance(site.node, ast.Call) and isinstance(site.node.func, ast.Attribute):
            title = "Use `.device`"
            edit = self.replace(site.node, f"{self.source.segment(site.node.func.value)}.device")
        elif site.problem == "object" and isinstance(site.node, ast.Name | ast.Attribute | ast.Call):
            title, edit = "Use `.type`", edits.put_after(self.source, site.node, ".type")
        elif name := _lacking(site):
            title = f"Say what it is: `{name}=`"
            edit = self.replace(site.node, f"{name}={self.source.segment(site.node)}")
        elif site.problem == "unknown" and len(site.call.args) + len(site.call.keywords) == 1:
            title, edit = "Leave the argument out", self.replace(site.call, f"{self.source.segment(site.call.func)}()")
        return edits.fix_of(title, edit, safe=True)


def _lacking(site: DeviceArgument) -> str:
    """The name with which the argument would be right, empty where there is none."""
    if site.problem in ("bool", "second") and site.node in site.call.args and site.role in (".cuda", ".to"):
        return "non_blocking"
    last = site.problem == "position" and site.node is site.call.args[-1]
    return "device" if last and all(keyword.arg not in ("device", None) for keyword in site.call.keywords) else ""
