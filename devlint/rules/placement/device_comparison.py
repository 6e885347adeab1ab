"""DVL110: comparing a device with what it never equals."""

from __future__ import annotations

import ast
import re

from devlint.flow.catalog.concepts import CUDNN_SETTINGS, FLUSH, SEEDS
from devlint.flow.syntax import names
from devlint.rules.base import Applicability, Edit, Fix, Report, Reports, Rule, Severity, Span
from devlint.rules.code import edits
from devlint.rules.code.blocks import way_to
from devlint.rules.code.imports import importing
from devlint.sites.devices import DeviceTest
from devlint.source.syntax import walk
from devlint.source.tree import Source

_OUTCOMES = {"==": "False", "is": "False", "in": "False", "!=": "True", "is not": "True", "not in": "True"}
_REASONS = {
    "text": "{subject} is a `torch.device`, which never equals a string",
    "identity": "each `torch.device` is an object of its own",
    "name": "{subject} is only given names that torch has for devices, and {other} is none",
    "index": "the device of a tensor has an index, as in `cuda:0`, and {other} has none",
}
_NAMES = "`cpu`, `cuda` (with ROCm, too), `mps`, `xpu`, ..."

_TO_HOST = frozenset("cpu detach detach_ numpy".split())
"""Methods that bring a tensor to the host, or leave alone one that is there."""


class DeviceComparisonAlwaysFalse(Rule):
    """A `torch.device` never equals a string, and `cuda:0` never equals `cuda`.

    ## What it does
    Reports comparisons of a `torch.device` with a string, as in `x.device == "cuda"` or `x.device in ("cuda", "cpu")`;
    in a chain, `x.device == y.device == "cuda"`; by `is`; of a tensor's device with `torch.device("cuda")`, which lacks
    the index that the device of every tensor on an accelerator has: as a hint, since what hangs on it may do no harm.
    That `"cuda" in x.device` raises is an error. Also comparisons of what the code only ever sets to `"cuda"` or
    `"cpu"` with `"gpu"`, or another word that torch has for no device; and, for who selects the rule, questions for a
    type of the CPU, which no tensor on an accelerator has: `isinstance(x, torch.LongTensor)`,
    `x.type() == "torch.FloatTensor"`.

    ## Why it matters
    The comparison has one outcome, wherever the tensor is: a branch is never taken, or always.

    ## Example
    ```python
    def autocast_for(x: torch.Tensor):
        return torch.bfloat16 if x.device == "cpu" else torch.float16
    ```

    ## Use instead
    ```python
    def autocast_for(x: torch.Tensor):
        return torch.bfloat16 if x.device.type == "cpu" else torch.float16
    ```

    ## When it stays silent
    - The device is not proven to be a `torch.device`: `args.device == "cuda"` compares strings, and so does an object
      of which nothing shows that it is a tensor.
    - Nothing hangs on the outcome: it is for those who select the rule where all that is done under `device != "cpu"`
      does nothing without an accelerator, such as `torch.cuda.manual_seed(...)` and `torch.cuda.empty_cache()`, is a
      move of what is compared, or copies it to the host; and where both sides of `device == "cuda"` only seed.
    - A file that asks for a type of the CPU speaks of one of CUDA as well, or of `torch.Tensor` in the same question.
    - `x.device.type == "cuda"`, `str(x.device) == "cuda:0"`, `x.device == torch.device("cpu")`,
      `x.device == torch.device("cuda:0")`, and the devices of two tensors.

    ## Fix safety
    `x.device == "cuda"` becomes `x.device.type == "cuda"`, `x.device == "cuda:0"` becomes
    `x.device == torch.device("cuda:0")`, and `is` becomes `==`. Unsafe: the code that was never run runs now.

    ## References
    - [torch.device](https://docs.pytorch.org/docs/stable/tensor_attributes.html#torch.device)
    """

    code = "DVL110"
    severity = Severity.INFO
    fixes = (Applicability.UNSAFE,)

    def judge(self, site: DeviceTest) -> Reports:
        """A report for each comparison whose outcome does not hang on the device."""
        quoted = edits.quoted(self.source.segment(site.node), "the comparison")
        subject = f"`{edits.short(self.source.segment(site.subject), 'the device')}`"
        other = f"`{edits.short(self.source.segment(site.other), 'the other')}`"
        if site.problem == "type":
            yield self._of_the_host(site, quoted, other)
            return
        if site.problem == "membership":
            message = f"{quoted} raises: {subject} is a `torch.device`, in which nothing can be looked for"
        else:
            reason = _REASONS[site.problem].format(subject=subject, other=other)
            message = f"{quoted} is always {_OUTCOMES[site.operator]}: {reason}"
        yield Report(
            message,
            label="raises" if site.problem == "membership" else f"always {_OUTCOMES[site.operator]}",
            severity=Severity.ERROR if site.problem == "membership" else None,
            help=f"torch calls its devices {_NAMES}"
            if site.problem == "name"
            else "compare the type, `.type`, or two devices with their indices",
            fix=self._fix(site),
            asked=_is_idle(self.source, site),
        )

    def _of_the_host(self, site: DeviceTest, quoted: str, other: str) -> Report:
        """A report where a tensor is asked whether it has a type of the CPU."""
        return Report(
            f"{quoted} is {_OUTCOMES[site.operator]} for every tensor on an accelerator: {other} is a type of the CPU",
            label=f"{_OUTCOMES[site.operator]} on an accelerator",
            help="ask whether it is a `torch.Tensor`, and for its `dtype`",
            # whoever keeps what is asked here on the CPU loses nothing
            asked=True,
        )

    def _fix(self, site: DeviceTest) -> Fix | None:
        # of a chain, each link would have to change
        chain = isinstance(site.node, ast.Compare) and len(site.node.ops) > 1
        changes = {"text": self._of_text, "identity": self._of_identity, "index": self._of_index}
        found = changes[site.problem](site) if site.problem in changes and not chain else None
        return edits.fix_of("Compare what can be equal", found)

    def _of_text(self, site: DeviceTest) -> tuple[Edit, ...] | None:
        options = site.other.elts if isinstance(site.other, ast.Tuple | ast.List | ast.Set) else [site.other]
        texts = [option.value for option in options if isinstance(option, ast.Constant)]
        if len(texts) < len(options):
            return None
        if all(":" not in str(text) for text in texts):
            return (self._type_of(site.subject),)
        needed = importing(self.source, "torch", site.node)
        if needed is None or site.operator not in ("==", "!="):
            return None
        return (*needed, self.replace(site.other, f"torch.device({self.source.segment(site.other)})"))

    def _of_index(self, site: DeviceTest) -> tuple[Edit, ...] | None:
        made = site.other
        if isinstance(made, ast.Call) and len(made.args) == 1 and not made.keywords:
            return (self._type_of(site.subject), self.replace(made, self.source.segment(made.args[0])))
        named = isinstance(made, ast.Name | ast.Attribute)
        return (self._type_of(site.subject), self._type_of(made)) if named else None

    def _of_identity(self, site: DeviceTest) -> tuple[Edit, ...] | None:
        if not isinstance(site.node, ast.Compare):
            return None
        first, second = (self.source.span(node) for node in (site.node.left, site.node.comparators[0]))
        between = Span(first.end_row, first.end_column, second.row, second.column)
        if between.row != between.end_row or isinstance(site.other, ast.Constant):
            return None
        operator = self.source.slice(between)
        plain = re.fullmatch(r"\s*is(\s+not)?\s*", operator)
        return (Edit(between, " != " if plain[1] else " == "),) if plain is not None else None

    def _type_of(self, node: ast.AST) -> Edit:
        return edits.put_after(self.source, node, ".type")


def _is_idle(source: Source, site: DeviceTest) -> bool:
    """Whether the program does the same as if the comparison had the outcome that was meant."""
    outer = next((outer for outer, _ in reversed(way_to(source, site.node)) if not isinstance(outer, ast.BoolOp)), None)
    if not isinstance(outer, ast.If) or site.node not in walk(outer.test):
        return False
    done = (*outer.body, *outer.orelse)
    calls = {names.called(statement.value) if isinstance(statement, ast.Expr) else "" for statement in done}
    if _OUTCOMES[site.operator] == "True":
        return all(_is_harmless(statement, site.subject) for statement in done)
    # what is never run is missed, unless the other side does as much
    return site.operator == "==" and bool(outer.orelse) and calls <= SEEDS


def _is_harmless(statement: ast.stmt, subject: ast.expr) -> bool:
    """Whether a statement does nothing without an accelerator, or moves what is compared to where it may be."""
    if isinstance(statement, ast.Assign):
        target = names.dotted(statement.targets[0])
        if target and f"{target}.device" == names.dotted(subject) and _is_copied(statement.value, target):
            return True
        moved = isinstance(statement.value, ast.Call) and names.called(statement.value) == f"{target}.to"
        return target.startswith(CUDNN_SETTINGS) or (moved and _is_compared(statement.value, subject))
    if not isinstance(statement, ast.Expr):
        return isinstance(statement, ast.Pass)
    return names.called(statement.value) in SEEDS | {FLUSH} or _is_compared(statement.value, subject)


def _is_copied(node: ast.expr, name: str) -> bool:
    """Whether something is a tensor on the host, or its array, of what has a name."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _TO_HOST:
        node = node.func.value
    return names.is_name(node, name)


def _is_compared(call: ast.expr, subject: ast.expr) -> bool:
    """Whether a call moves what has the device that is compared, or moves something there."""
    moved, _, method = names.called(call).rpartition(".")
    compared = names.dotted(subject)
    given = names.dotted(call.args[0]) if isinstance(call, ast.Call) and call.args else ""
    return method == "to" and bool(compared) and compared in (f"{moved}.device", given)
