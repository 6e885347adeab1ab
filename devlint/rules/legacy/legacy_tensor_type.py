"""DVL702: tensors of the days when a type said where they live, and variables."""

from __future__ import annotations

import ast
import re

from devlint.flow.catalog.accelerator_api import CUDA_TENSOR_TYPE
from devlint.flow.catalog.concepts import VARIABLE
from devlint.immutable import replace
from devlint.rules.base import Applicability, Fix, Report, Reports, Severity
from devlint.rules.code import edits
from devlint.rules.code.blocks import idle_statement, keyword_of, method_of, removal, way_to
from devlint.rules.code.control_flow import builds_no_graph_at
from devlint.rules.code.device_candidates import device_at_hand
from devlint.rules.code.device_choice import gains_little
from devlint.rules.code.imports import importing
from devlint.rules.legacy.deprecation import DeprecatedName
from devlint.sites.devices import Mention
from devlint.torch_api.rows import Topic

_DTYPES = {
    "Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16", "Long": "int64",
    "Int": "int32", "Short": "int16", "Char": "int8", "Byte": "uint8", "Bool": "bool",
}  # fmt: skip
_NEW_TENSORS = frozenset(
    f"torch.{name}"
    for name in """zeros ones empty full eye arange linspace rand randn randint randperm tensor from_numpy Tensor
    FloatTensor DoubleTensor LongTensor IntTensor ByteTensor BoolTensor""".split()
)
"""Functions whose results hang on no graph, as they are called in old code."""
_WITHOUT_VARIABLES = (0, 4)
"""The torch since which tensors are what variables were."""
_DISPLAYS = (ast.Tuple, ast.List, ast.Set, ast.Dict)
_ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)
_BEFORE = re.compile(r"\bloss\w*\.data\[0\]")
"""How a number was read from a loss before torch 0.4, which raises since 0.5."""


class LegacyCudaTensorType(DeprecatedName):
    """A tensor type such as `torch.cuda.FloatTensor` ties code to CUDA; `Variable` detaches, `volatile` does nothing.

    ## What it does
    Reports `torch.cuda.FloatTensor` and its kin, as constructors, in `.type(torch.cuda.FloatTensor)` or
    `.type("torch.cuda.FloatTensor")`, and handed on; `torch.set_default_tensor_type`; `volatile=` of a `Variable`; and,
    as an info, `torch.autograd.Variable` itself.

    ## Why it matters
    A type that says where a tensor lives leaves no choice: without CUDA, each of these raises, and other accelerators
    have no such types. `set_default_tensor_type` is deprecated since torch 2.1. `Variable(x)` is `x.detach()` since
    torch 0.4. `volatile=True`, which once kept a graph from being built, does nothing but warn.

    ## Example
    ```python
    def noise(n):
        return torch.cuda.FloatTensor(n, 8).normal_()
    ```

    ## Use instead
    ```python
    def noise(n, device):
        return torch.randn(n, 8, device=device)
    ```

    ## When it stays silent
    - `isinstance(x, torch.cuda.FloatTensor)` and other comparisons, annotations, and the import of a name; one of
      several in a tuple, a list or a dict.
    - `torch.FloatTensor` and other types of the CPU.
    - Code for several versions of torch: a `try` that handles an ImportError or AttributeError, a branch that hangs on
      `hasattr` or on the version.
    - It is an info only where the code runs only if CUDA is available, where a collective of `torch.distributed` gets
      the tensor, which NCCL takes from CUDA alone, and in tests; and of `volatile=` under `torch.no_grad()`, be it
      around all calls of the function in the file: nothing is lost.
    - Nothing says which torch the project needs: then `volatile=` is for those who select the rule.
    - `set_default_tensor_type` is for those who select the rule: `set_default_device` takes its place, but not for
      `torch.Tensor(n)`, and `set_default_dtype` besides.
    - Files that never ask which accelerator there is, or stop where CUDA is not available, are written for CUDA alone:
      who selects the rule is told. So is who does of a type of CUDA's where the code has no device at hand.

    ## Fix safety
    `Variable(x)` becomes `x`: safe where `x` is made right there, else unsafe, since a variable is detached from the
    graph of what it is made of, which `x` is not. `Variable(x, requires_grad=True)` becomes
    `x.detach().requires_grad_()`: safe. Where the code has a device at hand, a constructor and `.type(...)` name it:
    unsafe, since it may be another one.

    ## References
    - [Tensor types](https://docs.pytorch.org/docs/stable/tensors.html)
    - [Variables](https://docs.pytorch.org/docs/stable/autograd.html#variable-deprecated)
    - [set_default_tensor_type](https://docs.pytorch.org/docs/stable/generated/torch.set_default_tensor_type.html)
    """

    code = "DVL702"
    hints = False
    fixes = (Applicability.SAFE, Applicability.UNSAFE)
    topic = Topic.TENSOR_TYPE

    def judge(self, site: Mention) -> Reports:
        """A report for each use of a type of CUDA's tensors, of a variable, or of the default type."""
        if site.shim or site.use in ("import", "comparison"):
            return
        match = CUDA_TENSOR_TYPE.fullmatch(site.path)
        if match is not None:
            yield from self._type(site, match[1])
        elif site.path == VARIABLE and site.call is not None and self.can_name(_WITHOUT_VARIABLES):
            yield self._variable(site, site.call)
        elif site.path != VARIABLE:
            # what takes its place leaves `torch.Tensor(n)` on the CPU, and the dtype to another function
            yield from (replace(report, severity=Severity.INFO) for report in super().judge(site))

    def _type(self, site: Mention, kind: str) -> Reports:
        node = site.node
        spelled = str(node.value) if isinstance(node, ast.Constant) else self.source.segment(node)
        default = site.use == "conversion" and site.call is not None and method_of(site.call) != "type"
        if default or spelled.rpartition(".")[2] != site.path.rpartition(".")[2]:
            # under another name: told where it was given that; or a part of what is told of set_default_tensor_type
            return
        listed = any(isinstance(outer, _DISPLAYS) and inner is node for outer, inner in way_to(self.source, node))
        if listed and site.call is None:
            # one of several kinds of tensors to tell apart
            return
        dtype, device = _DTYPES.get(kind, ""), device_at_hand(self.source, site.node, site.scope)
        mild = site.scope.guarded or site.scope.bound or edits.in_test(self.source, site.scope)
        fails = "" if site.scope.guarded else ", and fails without it"
        new = f"`dtype=torch.{dtype}` and `device=`" if dtype else "a dtype and a device"
        yield Report(
            f"`{site.path}` is a type for CUDA only{fails}: use {new}",
            label="a legacy tensor type",
            severity=Severity.INFO if mild else None,
            help=f"say what it is and where apart: {new}",
            fix=self._typed(site, site.call, dtype, device) if site.call is not None and dtype and device else None,
            # with no device at hand there is nothing to put in its place but a design of one's own
            asked=site.scope.guarded or gains_little(self.source, site.node, site.scope, device),
        )

    def _typed(self, site: Mention, call: ast.Call, dtype: str, device: str) -> Fix | None:
        """The constructor, or the conversion, with a dtype and a device."""
        if call.keywords or "sparse" in site.path or "#" in self.source.segment(call):
            return None
        if site.use == "conversion" and isinstance(call.func, ast.Attribute):
            text = f"{self.source.segment(call.func.value)}.to({device}, torch.{dtype})"
        else:
            listed = len(call.args) == 1 and isinstance(call.args[0], ast.List | ast.Tuple)
            sizes = [given for given in call.args if isinstance(given, ast.Constant) and type(given.value) is int]
            if not listed and (not sizes or len(sizes) < len(call.args)):
                # values or sizes, the arguments do not show it
                return None
            function = "tensor" if listed else "empty"
            given = ", ".join(self.source.segment(argument) for argument in call.args)
            text = f"torch.{function}({given}, dtype=torch.{dtype}, device={device})"
        needed = importing(self.source, "torch", call)
        return edits.fix_of("Name a dtype and a device", needed, self.replace(call, text))

    def _variable(self, site: Mention, call: ast.Call) -> Report:
        volatile = keyword_of(call, "volatile")
        spelled = edits.short(self.source.segment(site.node), "Variable")
        if volatile is not None:
            lost = not builds_no_graph_at(self.source, call)
            why = ": the graph is built all the same" if lost else ", and no graph is built here"
            return Report(
                f"`volatile` of `{spelled}` does nothing since torch 0.4{why}",
                node=volatile,
                label="without effect",
                severity=None if lost else Severity.INFO,
                help="compute under `with torch.no_grad():`" if lost else "leave it out",
                # code that nobody has touched since may never have run on a torch that lacks it, and what it needs
                # instead was not there
                asked=self.target_torch is None or _BEFORE.search(self.source.text) is not None,
            )
        return Report(
            f"`{spelled}` makes a plain tensor since torch 0.4, detached from the graph of what it is given",
            label="a legacy variable",
            severity=Severity.INFO,
            help="use the tensor itself, `.detach()` it, or call its `.requires_grad_()`",
            fix=self._tensor(call),
        )

    def _tensor(self, call: ast.Call) -> Fix | None:
        """The tensor that a variable is made of, in its place."""
        given = call.args[0] if len(call.args) == 1 else None
        wanted = keyword_of(call, "requires_grad")
        if given is None or isinstance(given, ast.Starred) or len(call.keywords) > (wanted is not None):
            return None
        grad = False if wanted is None else wanted.value if isinstance(wanted, ast.Constant) else None
        if not isinstance(grad, bool):
            return None
        text = self.source.segment(given)
        if not isinstance(given, _ATOMS) or "\n" in text:
            text = f"({text})"
        fresh = _is_new(given)
        if grad:
            text += ".requires_grad_()" if fresh else ".detach().requires_grad_()"
        found = idle_statement(self.source, call, given) if isinstance(given, ast.Name) and not grad else None
        # `x = Variable(x)` would leave `x = x`
        removed = removal(self.source, found)
        used = f"Use `{text}`" if edits.fits(text) else "Use the tensor itself"
        return edits.fix_of(used, removed or self.replace(call, text), safe=fresh or grad)


def _is_new(node: ast.expr) -> bool:
    """Whether an expression makes a tensor that hangs on no graph."""
    if not isinstance(node, ast.Call):
        return False
    if ast.unparse(node.func) in _NEW_TENSORS:
        return not any(keyword.arg in (None, "requires_grad") for keyword in node.keywords)
    if not isinstance(node.func, ast.Attribute) or node.args or node.keywords:
        return False
    return node.func.attr == "detach" or (node.func.attr == "clone" and _is_new(node.func.value))
