"""DVL601: `.cuda()` where the code could say which device it wants."""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from devlint.device import Kind, Role
from devlint.flow.catalog import torch_table
from devlint.flow.catalog.accelerator_api import OTHER_BACKENDS
from devlint.flow.syntax.nodes import holds
from devlint.rules.base import Applicability, Edit, Report, Reports, Rule, Severity
from devlint.rules.code import edits
from devlint.rules.code.blocks import Way, around, assigned, function_at, keyword_of, method_of, stores, way_to
from devlint.rules.code.device_candidates import device_instead_of_cuda
from devlint.rules.code.device_choice import chooses_cuda_alone, device_choice, gains_little, knows_others, since
from devlint.rules.code.lazy import cst
from devlint.rules.transfers.creating import creating
from devlint.sites.base import Creation
from devlint.sites.transfers import Transfer
from devlint.source.syntax import walk

_NUMBER = r"(?i)(?:^|[._])\w*(?:rank|gpus?|ids?|idx|index)(?:\[.*\])?\Z"
"""What is the number of a GPU by its name."""
_IDS = re.compile(r"(?:device|gpu)_?ids\b|\bgpus\b|\brange\(")
"""What has the numbers of GPUs."""
_FACTS = (Kind.ACCELERATOR, Kind.CPU)
_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


class HardcodedCudaCall(Rule):
    """`.cuda()` fails on every machine without CUDA and leaves other accelerators unused.

    ## What it does
    Reports `.cuda()` and `.cuda(device)` on tensors and modules.

    ## Why it matters
    Without CUDA the call raises "Torch not compiled with CUDA enabled" or "No CUDA GPUs are available", on a laptop, on
    a CI machine, and on machines whose accelerator is MPS or XPU. `.cuda(device)` is no better: it refuses any device
    that is not CUDA's. (ROCm is not concerned: it answers to the name of CUDA.)

    ## Example
    ```python
    def build():
        return nn.Linear(8, 2).cuda()
    ```

    ## Use instead
    ```python
    def build(device):
        return nn.Linear(8, 2).to(device)
    ```

    ## When it stays silent
    - Functions of `torch.cuda`, such as `torch.cuda.synchronize()`.
    - Inside functions that are a `.cuda()` themselves, such as `cuda`, `to`, `_apply` or `move_to_cuda`.
    - Where the code runs only if CUDA is available, and the function speaks of other accelerators, too: of `torch.xpu`;
      or the function, class or file is about CUDA by its name, such as `cuda_solver.py`.
    - The top level of the file imports a library that is for CUDA alone, such as `tensorrt`; or the code runs only if
      the backend is NCCL.
    - The receiver is known to be something else than a tensor or a module.
    - It moves only what is not on CUDA yet, `if not x.is_cuda: x = x.cuda()`, as kernels for CUDA alone ask for.
    - The move can be left out, as DVL201 or DVL303 says.

    It is one hint for a project, of the places where the file itself chooses what the machine has, `device = "cuda" if
    torch.cuda.is_available() else "cpu"`, and the device is at hand: `.cuda()` defeats the choice. Who selects the rule
    is told of all others, too: to choose a device is a change of the whole program. So it is where the call runs only
    if CUDA is available, and the device at hand is that of CUDA or the CPU: it would open nothing.

    So it is where CUDA is needed anyway: the file stops where it is not available, calls before what raises without it,
    such as `torch.cuda.set_device(rank)`, builds kernels for it or imports what needs it, such as `flash_attn`; a
    collective of `torch.distributed` is given the tensor, which NCCL takes from CUDA alone, unless the file speaks of
    Gloo; the code asks `if x.is_cuda:` before; the module is known to hold nothing, so that the call can be left out;
    and in tests.

    ## Fix safety
    `.cuda(device)` becomes `.to(device)`: safe where `device` is proven to be a device, else unsafe, since `None` means
    the current GPU to one and "stay" to the other. There is no fix for an index. `.cuda()` becomes `.to(device)` where
    the code has a device at hand: unsafe, since it may be another one. All other arguments are kept.

    ## References
    - [Device-agnostic code](https://docs.pytorch.org/docs/stable/notes/cuda.html)
    - [Accelerators](https://docs.pytorch.org/docs/stable/accelerator.html)
    """

    code = "DVL601"
    severity = Severity.INFO
    fixes = (Applicability.UNSAFE,)

    def judge(self, site: Transfer) -> Reports:
        """A report for every `.cuda()` that may meet a tensor or a module."""
        if site.spelled != "cuda" or site.foreign:
            return
        if edits.moves_to_cuda_by_name(site.scope.function) or (_is_there(site) and self._for_cuda_alone(site)):
            return
        way = way_to(self.source, site.node)
        if _unless_there(way, site):
            # which kernels of CUDA alone ask for: they cannot read another device
            return
        there = _is_there(site)
        where = site.value.device
        if there and (where.role is Role.PLACE or (where.role and _beside(way) == f"{where.text}.device")):
            # it follows its module, or was made beside the tensor that is asked about: there it stays
            return
        # in a lambda that tells `torch.load` where things go: storages, which are no tensors
        lambdas = (outer for outer, inner in way if isinstance(outer, ast.keyword) and isinstance(inner, ast.Lambda))
        if any(keyword.arg == "map_location" for keyword in lambdas):
            told = "give `map_location` the device itself, which it takes as it is: `map_location=device`"
            # which takes the code to one, and the number of a GPU is none
            yield Report(_bound_to_cuda(site, True), "CUDA only", help=told, asked=True)
        elif site.empty:
            message = f"`{_call(site)}` moves nothing: the module has no parameters and no buffers"
            # who has CUDA loses nothing by it, and a weight may be added some day
            help_ = "leave `.cuda()` out"
            yield Report(message, "does nothing", help=help_, asked=True)
        else:
            yield from self._bound(site, way)

    def _bound(self, site: Transfer, way: Way) -> Reports:
        """That the call is bound to CUDA, if there is something better to say."""
        there = _is_there(site)
        number = "" if site.target_node is None else ast.unparse(site.target_node)
        device = ""
        if not re.search(_NUMBER, number):
            number, device = "", _beside(way)
            device = device or device_instead_of_cuda(self.source, site.node, site.scope)
        # else which of the GPUs it is says more than a device that happens to be at hand
        given, safe = self._given_device(site)
        asking = _only_asks(way) if there and device and _beside(way) else None
        call, instead = _call(site, given), given or device
        others = bool(instead) or (knows_others(self) and not number)
        idle = there and (not others or _is_asked_for(way, device))
        if idle and not site.scope.by_name:
            # the code does what the advice would
            return
        replaces = instead and (given or site.target_node is None)
        made = _made_at_once(site)
        created = creating(self.source, site, made) if made is not None and device and not given else None
        at_once = made is not None and (created is not None or not instead)
        moved = edits.rewritten(self.source, site.node, lambda call: _to(call, instead)) if replaces else None
        if moved is not None and asking is not None and isinstance(asking.body[0], ast.Assign):
            moved = self._without_question(asking, site.node, moved)
        if given and site.scope.guarded:
            message = f"`{call}` takes CUDA devices only, so that has to be asked first: `.to({given})` takes them all"
        elif given:
            message = f"`{call}` takes CUDA devices only and fails for every other: `.to({given})` takes them all"
        else:
            message = _bound_to_cuda(site, others)
        yield Report(
            message,
            label="CUDA only",
            help=self._help(instead, number, made.function if made is not None and at_once else "")
            + (", without asking: it moves nothing where they are together" if asking is not None else ""),
            fix=created or (edits.fix_of(f"Use `.to({instead})`", moved, safe=safe) if replaces else None),
            # it works where it runs: who wants it everywhere asks for that
            asked=bool(idle)
            or (there and chooses_cuda_alone(self.source, site.node, instead))
            or _asks_where_it_is(way)
            or gains_little(self.source, site.node, site.scope, instead),
            covers=("DVL203",) if at_once else (),
        )

    def _without_question(self, asking: ast.If, call: ast.AST, moved: Edit) -> Edit:
        """The statement that a question stands before, with the call as it is ``moved``, in the place of both."""
        whole, inner = self.source.segment(asking.body[0]), self.source.segment(call)
        return self.replace(asking, whole.replace(inner, moved.content, 1))

    def _help(self, device: str, number: str, made: str) -> str:
        """What to say instead: ``made`` is the function that can be told the device itself, if one can."""
        named = device or "device"
        told = f"create it there: `{made}(..., device={named})`" if made else f"use `.to({named})`"
        if device:
            return told
        chosen = device_choice(self)
        if number:
            chosen = f'torch.device("cuda", {number}) if torch.cuda.is_available() else torch.device("cpu")'
        return f"choose once, `device = {chosen}`{'' if number else since(self)}, and {told}"

    def _given_device(self, site: Transfer) -> tuple[str, bool]:
        """The argument where it is a device, and whether that is proven; an index, or what may be one, is none."""
        node, target = site.target_node, site.target
        if target is None or not isinstance(node, ast.Name | ast.Attribute | ast.Call):
            return "", False
        text = ast.unparse(node)
        made = isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "device"
        proven = target.kind is Kind.CHOICE or made or (isinstance(node, ast.Call) and target.kind in _FACTS)
        # what is asked to be below some number is an index, of which -1 is the CPU
        asked = (part for part in walk(around(self.source, site.node)) if isinstance(part, ast.Compare))
        number = any(isinstance(part.ops[0], _ORDERS) and ast.unparse(part.left) == text for part in asked)
        number = number or any(map(_is_number, (value for _, value in assigned(self.source.tree).get(text, ()))))
        number = number or re.sub(r".*(?=\.)", "", text) in _numbers(self.source.tree)
        device = proven or text.rpartition(".")[2].lower().endswith("device")
        return (text, proven) if device and not number else ("", False)

    def _for_cuda_alone(self, site: Transfer) -> bool:
        """Whether code that runs where CUDA is has no need of others: it is about CUDA, or serves them elsewhere."""
        if site.scope.bound or edits.is_about_cuda(self.source, site.scope):
            return True
        function = function_at(self.source, site.node)
        lines = [self.source.segment(function)] if function is not None else self.source.lines
        return site.scope.guarded and any(map(OTHER_BACKENDS.search, lines))


@lru_cache(maxsize=8)
def _numbers(tree: ast.AST) -> frozenset[str]:
    """What a file takes for the number of a GPU: ``.option`` if that is a whole number, and the names of such loops."""
    found: set[str] = set()
    for node in walk(tree):
        if isinstance(node, ast.Call) and method_of(node) in ("add_argument", "option"):
            kind, default = keyword_of(node, "type"), keyword_of(node, "default")
            names = [part.value for part in node.args if isinstance(part, ast.Constant) and isinstance(part.value, str)]
            if (isinstance(kind, ast.Name) and kind.id == "int") or (default is not None and _is_number(default)):
                found.update("." + name.lstrip("-").replace("-", "_") for name in names)
        elif isinstance(node, (ast.For, ast.comprehension)) and _IDS.search(ast.unparse(node.iter)):
            found.update(part.id for part in walk(node.target) if isinstance(part, ast.Name))
    return frozenset(found)


def _is_number(value: ast.expr) -> bool:
    """Whether a value is the number of a GPU, or -1 for the CPU."""
    value = value.operand if isinstance(value, ast.UnaryOp) else value
    if isinstance(value, ast.Call):
        return ast.unparse(value.func).rpartition(".")[2] in ("get_device", "current_device")
    return isinstance(value, ast.Constant) and isinstance(value.value, int)


def _is_asked_for(way: Way, device: str) -> bool:
    """Whether the code comes here where that very device is CUDA: ``if device == torch.device("cuda")``."""
    tests = (ast.unparse(outer.test) for outer, inner in way if isinstance(outer, ast.If) and inner in outer.body)
    return bool(device) and any(re.search(rf"\b{re.escape(device)}\b.*cuda", test) for test in tests)


def _is_there(site: Transfer) -> bool:
    """Whether without CUDA the code does not come here."""
    return site.scope.guarded or site.scope.required


def _made_at_once(site: Transfer) -> Creation | None:
    """The call in the receiver that makes what is moved, where it takes a device itself."""
    made = site.creation
    if made is None or made.helper or made.array or made.others or made.generator or not holds(site.node, made.node):
        return None
    known = torch_table.function(made.function)
    wraps = known is not None and known.rule == "cpu"
    return made if made.function.rpartition(".")[2].islower() and not wraps else None


def _beside(way: Way) -> str:
    """The device of another tensor, where the code moves there if that one is on CUDA: ``if x.is_cuda: y.cuda()``."""
    for outer, inner in way:
        asked = outer.test if isinstance(outer, ast.If) and inner in outer.body else None
        if isinstance(asked, ast.Attribute) and asked.attr == "is_cuda" and isinstance(asked.value, ast.Name):
            name = asked.value.id
            # a module has no device of its own
            return f"{name}.device" if name != "self" and name not in stores(outer) else ""
    return ""


def _asks_where_it_is(way: Way) -> bool:
    """Whether what is done hangs on a question that may be there for kernels of CUDA alone: ``if x.is_cuda:``."""
    asked = (outer.test for outer, inner in way if isinstance(outer, ast.If) and inner is not outer.test)
    return any(isinstance(part, ast.Attribute) and part.attr == "is_cuda" for test in asked for part in walk(test))


def _only_asks(way: Way) -> ast.If | None:
    """The question whether a tensor is on CUDA, if nothing but a move hangs on it: ``if x.is_cuda: y = y.cuda()``."""
    for outer, inner in way:
        if isinstance(outer, ast.If) and inner in outer.body:
            alone = len(outer.body) == 1 and not outer.orelse and isinstance(inner, (ast.Assign, ast.Return))
            return outer if alone else None
    return None


def _call(site: Transfer, given: str = "") -> str:
    """The call as messages quote it."""
    return f"{edits.in_brackets(edits.short(site.value.text, ''))}.cuda({given})"


def _bound_to_cuda(site: Transfer, others: bool) -> str:
    """What is wrong with it; of ``others``, only where the advice takes other accelerators."""
    if _is_there(site) and not site.scope.by_name:
        return f"`{_call(site)}` uses CUDA only: other accelerators, such as MPS and XPU, are left unused"
    left = ", and leaves MPS, XPU and other accelerators unused" if others else ""
    return f"`{_call(site)}` fails where CUDA is not available{left}"


def _unless_there(way: Way, site: Transfer) -> bool:
    """Whether the code moves a tensor to CUDA where it is not there yet: ``if not x.is_cuda: x = x.cuda()``."""
    node = site.node
    moved = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else node
    wanted = f"not {ast.unparse(moved)}.is_cuda"
    return any(
        isinstance(outer, (ast.If, ast.IfExp)) and inner is not outer.test and wanted in ast.unparse(outer.test)
        for outer, inner in way
    )


def _to(call: cst.Call, device: str) -> cst.Call | None:
    """The call as ``.to(device)`` with all its arguments; ``None`` where that cannot be said."""
    args = list(call.args)
    positional = [arg for arg in args if arg.keyword is None]
    if not isinstance(call.func, cst.Attribute) or any(arg.star for arg in args) or len(positional) > 2:
        return None
    if len(positional) == 2:
        # the second argument of .cuda() is non_blocking, that of .to() is the dtype
        args[1] = edits.named(args[1], "non_blocking")
    if not positional and not any(arg.keyword is not None and arg.keyword.value == "device" for arg in args):
        comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")) if args else cst.MaybeSentinel.DEFAULT
        args.insert(0, cst.Arg(cst.parse_expression(device), comma=comma))
    return call.with_changes(func=call.func.with_changes(attr=cst.Name("to")), args=args)
