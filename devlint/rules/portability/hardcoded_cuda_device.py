"""DVL602: "cuda" written into a placement."""

from __future__ import annotations

import ast

from devlint.flow.catalog.concepts import DEVICE
from devlint.rules.base import Applicability, Report, Reports, Rule, Severity
from devlint.rules.code import edits
from devlint.rules.code.blocks import way
from devlint.rules.code.device_candidates import device_instead_of_cuda
from devlint.rules.code.device_choice import device_choice, gains_little, knows_others, since
from devlint.sites.devices import Literal

_FAILS = "fails where CUDA is not available"
_TOO = ", and leaves MPS, XPU and other accelerators unused"
_LEAVES = "leaves MPS, XPU and other accelerators unused"
_DEFAULT = "callers that name no device get `{text}`, also where CUDA is not available"
_MESSAGES = {
    ".to": f"`.to({{text}})` {_FAILS}",
    "device": f"`device={{text}}` {_FAILS}",
    "argument": f"`device={{text}}` {_FAILS}, if it decides where something goes",
    DEVICE: "`{text}` is written into this device: using it " + _FAILS,
    "variable": "`{text}` is written into this device: using it " + _FAILS,
    "map_location": "`map_location={text}` fails where CUDA is not available",
    "set_default_device": "`set_default_device({text})` succeeds anywhere: the first tensor after it "
    "fails where CUDA is not available",
    "parameter": _DEFAULT,
    "default": _DEFAULT,
    "option": "whoever names no device gets `{text}`, also where CUDA is not available",
    "handed": f"`{{text}}` is handed to a function that places something by it, which {_FAILS}",
    "rank": "`{text}` is written into the device of this process: it " + _FAILS,
    "autocast off": "`autocast({text}, enabled=False)` leaves mixed precision switched on for every other accelerator",
    "autocast": "`autocast({text})` is switched off, with a warning, where CUDA is not available, "
    "and does not cover other accelerators",
}
_ENTERED = frozenset({"handed", "option"})
_CUDA_ALONE = frozenset({"map_location", "set_default_device", "argument", "rank"})
_REPLACED = frozenset({".to", "device", "map_location", DEVICE, "variable"})
_INSIDE = "say it inside the function, for the device of an argument: `with torch.autocast(x.device.type, ...)`"


class HardcodedCudaDevice(Rule):
    """A `"cuda"` written into a placement fails on every machine without CUDA.

    ## What it does
    Reports the strings `"cuda"` and `"cuda:0"` where they decide where something goes: `.to("cuda")`, `device="cuda"`,
    `torch.device("cuda")`, `device = "cuda"`, `map_location="cuda"`, `set_default_device("cuda")`; and as an info where
    callers can say otherwise, `def f(device="cuda")`, `if device is None: device = "cuda"`, or nothing fails,
    `autocast("cuda")`.

    ## Why it matters
    Without CUDA the first use raises "Torch not compiled with CUDA enabled" or "No CUDA GPUs are available", also on
    machines whose accelerator is MPS or XPU. `"cuda:0"` also ties every process of a multi-GPU job to one GPU.

    ## Example
    ```python
    def noise(n):
        return torch.randn(n, device="cuda")
    ```

    ## Use instead
    ```python
    def noise(n, device):
        return torch.randn(n, device=device)
    ```

    ## When it stays silent
    - The code runs only where CUDA is available: `"cuda" if torch.cuda.is_available() else "cpu"`, an early exit.
      Where only the name of a setting says so, `if use_gpu:`, who selects the rule is told.
    - Comparisons, such as `device.type == "cuda"`, and the choices of a command line.
    - `torch.amp.GradScaler("cuda")`, which switches itself off.
    - Defaults of parameters by which the function is not seen to place anything: they only go there, are compared, or
      answer questions such as `torch.get_autocast_dtype(device)`; and such as it replaces where CUDA is missing.
    - The function, or the top level of the file, imports a library that needs CUDA itself, such as `tensorrt`.
    - What asks for it knows no other accelerator: a function of `torch.cuda`, `backend="nccl"`; or what gets the tensor
      is given something of `torch.cuda` beside it: `group.broadcast(x, stream=torch.cuda.current_stream())`.
    - It is the default of a private function of which every call in the file gives the parameter.
    - It is one of the devices in a list with the CPU, and tensors under `FakeTensorMode`.
    - It is an option of a script whose names a configuration sets anew: `exec(open("configurator.py").read())`.
    - The fallback in an `except` handler.
    - Inside functions that are a `.cuda()` themselves: `cuda`, `to`, `_apply`, `move_to_cuda`, and in functions,
      classes and files that are about CUDA by their names, such as `CUDAAccelerator`.

    It is one hint for a project, of the places where the file itself chooses what the machine has, `device = "cuda" if
    torch.cuda.is_available() else "cpu"`, and the device is at hand: the literal defeats the choice. Who selects the
    rule is told of all others, too: to choose a device is a change of the whole program.

    So it is where CUDA is needed anyway: the file stops where it is not available, calls before what raises without it,
    such as `torch.cuda.set_device(rank)`, builds kernels for it or imports what needs it, such as `flash_attn`; a
    setting says by its name, `if use_gpu:`, that it is there; it is the default of an option, or `device=` of a
    function of which nobody knows what it does with it; and in tests.

    ## Fix safety
    Where the code has a device at hand, `.to("cuda")`, `device="cuda"` and `map_location="cuda"` name it instead:
    unsafe, since it may be another device.

    ## References
    - [Device-agnostic code](https://docs.pytorch.org/docs/stable/notes/cuda.html)
    - [Accelerators](https://docs.pytorch.org/docs/stable/accelerator.html)
    - [Automatic mixed precision](https://docs.pytorch.org/docs/stable/amp.html)
    - [torch.set_default_device](https://docs.pytorch.org/docs/stable/generated/torch.set_default_device.html)
    """

    code = "DVL602"
    severity = Severity.INFO
    fixes = (Applicability.UNSAFE,)

    def judge(self, site: Literal) -> Reports:
        """A report for every literal CUDA device which nothing guards."""
        if site.text.partition(":")[0] != "cuda" or site.role not in _MESSAGES:
            return
        if site.scope.handler or edits.is_about_cuda(self.source, site.scope):
            return
        if site.scope.guarded and not site.scope.by_name:
            return
        if site.role == "variable" and not site.scope.function and _is_option(self.source.tree):
            return
        device = device_instead_of_cuda(self.source, site.node, site.scope) if site.role in _REPLACED else ""
        replaced = device and self.source.segment(site.node).strip("rRuU\"'") == site.text
        # in a decorator, no device in use is known yet
        steps = (way(self.source.tree, site.node) or ()) if site.role.startswith("autocast") else ()
        decorates = any(child in getattr(parent, "decorator_list", ()) for parent, child in steps)
        yield Report(
            self._message(site, bool(device) or knows_others(self)),
            label="CUDA only",
            help=_INSIDE if decorates else self._help(site.role, device),
            fix=edits.fix_of(f"Use `{device}`", self.replace(site.node, device)) if replaced else None,
            # it works where it runs, or nobody knows what becomes of it: who wants it everywhere asks for that
            asked=site.role in _ENTERED
            or site.scope.guarded
            or gains_little(self.source, site.node, site.scope, device),
        )

    def _message(self, site: Literal, others: bool) -> str:
        """What is wrong with it; of ``others``, only where the advice takes other accelerators."""
        message = _MESSAGES[site.role].format(text=f'"{site.text}"')
        if site.scope.required:
            # without CUDA, the code does not come here
            return message.replace(_FAILS, _LEAVES)
        return message + _TOO if others and message.endswith(_FAILS) and site.role not in _CUDA_ALONE else message

    def _help(self, role: str, device: str) -> str:
        if role.startswith("autocast"):
            # what the code calls its device may be a string, or None
            return "pass the type of the device in use, which a tensor `x` knows as `x.device.type`"
        if role == "parameter":
            return "leave the default out, or make it `None` and choose the device inside the function"
        if device:
            return f"use `{device}`"
        if role == "map_location":
            return 'load to the CPU, `map_location="cpu"`, and move the module afterwards'
        if role in ("argument", "handed", "option", "rank"):
            # it may want a string, or a number beside it
            return 'choose what the machine has: `"cuda" if torch.cuda.is_available() else "cpu"`'
        chosen = f"`{device_choice(self)}`{since(self)}"
        if role in (DEVICE, "variable", "default", "set_default_device"):
            return f"choose what the machine has: {chosen}"
        return f"choose once, `device = {device_choice(self)}`{since(self)}, and name `device` here"


def _is_option(tree: ast.AST) -> bool:
    """Whether a file's own names are its options, which a configuration may set anew: ``exec(open(...).read())``."""
    calls = (node.value for node in getattr(tree, "body", ()) if isinstance(node, ast.Expr))
    return any(isinstance(call, ast.Call) and ast.unparse(call.func) == "exec" for call in calls)
