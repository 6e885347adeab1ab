"""DVL106: the move of a parameter, or of a tensor that collects gradients, takes its place."""

from __future__ import annotations

import ast

from devlint.device import Kind
from devlint.flow.catalog.concepts import DEVICE
from devlint.rules.base import Applicability, Report, Reports, Rule, Severity, proof
from devlint.rules.code import edits
from devlint.rules.code.blocks import (
    around,
    assigned,
    builds_no_graph,
    function_at,
    keyword_of,
    method_of,
    receiver,
    statement_of,
    targets_of,
    way_to,
)
from devlint.rules.code.device_candidates import device_at_hand
from devlint.rules.code.edits import shown
from devlint.rules.code.lazy import cst
from devlint.sites.placement import LeafMove
from devlint.source.syntax import walk
from devlint.source.tree import Source

_FACTORIES = frozenset("arange empty eye full linspace logspace ones rand randint randn randperm tensor zeros".split())
_PARAMETER = "parameter"


class MoveBreaksLeaf(Rule):
    """A parameter, or a tensor that collects gradients, is moved, and the copy takes its place.

    ## What it does
    Reports `nn.Parameter(t).to(device)`, and moves of a tensor made with `requires_grad=True` or by
    `.requires_grad_()`, whose result takes the tensor's place. For tensors that are no parameters it is an error where
    the gradient of the result is read, or an optimizer gets it; a warning where an attribute keeps it; else a hint.

    ## Why it matters
    What `.to()` returns is computed from the leaf, and gradients stay with the leaf, which nobody holds any more. A
    moved `nn.Parameter` is a plain tensor that no module registers; its optimizer raises "can't optimize a non-leaf
    Tensor", and `.grad` stays `None`. On the CPU `.to("cpu")` returns the tensor itself, so that all is well there.

    ## Example
    ```python
    class Scale(nn.Module):
        def __init__(self, device):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(8)).to(device)
    ```

    ## Use instead
    ```python
    class Scale(nn.Module):
        def __init__(self, device):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(8, device=device))
    ```

    ## When it stays silent
    - The leaf keeps its name, and only its copy is computed with: `model(x.to(device))`, then `x.grad`.
    - The order is right: `.to(device).requires_grad_()`, `.detach().requires_grad_()` after the move.
    - `retain_grad()` is called on the copy; or it is made under `torch.no_grad()`, so that it is a leaf, and is asked
      for gradients afterwards.
    - The tensor is there already, or it only goes into a computation, or is returned.
    - A parameter with `requires_grad=False` that the function keeps to itself. Who selects the rule is told where the
      code is of no module.
    - Who selects the rule is told where nothing shows that the tensor was made on the CPU: what an argument, or a call
      of others, gives may be there already. Also of an attribute that another method gives something else, as torch
      forbids for a registered parameter.
    - The receiver is not proven to be a tensor: modules have `.requires_grad_()`, too, and move in place.

    ## Fix safety
    Unsafe: the tensor is moved, or created there, before it becomes a parameter or asks for gradients; random numbers
    drawn on an accelerator are others. There is no fix where an existing name or attribute is rebound.

    ## References
    - [torch.Tensor.is_leaf](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.is_leaf.html)
    - [torch.nn.Parameter](https://docs.pytorch.org/docs/stable/generated/torch.nn.parameter.Parameter.html)
    """

    code = "DVL106"
    severity = Severity.ERROR
    fixes = (Applicability.UNSAFE,)
    proof = proof.Traces(left=(proof.COPY, proof.MOVE), confirm=(proof.COPY,), contradict=(proof.ONLY_IN_PLACE,))

    def judge(self, site: LeafMove) -> Reports:
        """A report for a move that leaves nobody with the leaf."""
        if _makes_leaf(self.source, site):
            return
        parameter = site.value.grad == _PARAMETER
        message = "a copy of {} takes its place, and {} no leaf: its `.grad` stays `None`"
        told = "move the tensor first, and ask for gradients then: `.requires_grad_()`"
        if parameter:
            message = "a copy of the parameter {} takes its place, and {} no parameter: no module registers it"
            told = "move the data first, and make it a parameter then"
            held = _plain_list(self.source, site.node)
            told += f", in an `nn.ParameterList`: the plain list `{held}` registers nothing" if held else ""
        made_here, device = isinstance(site.value.node, ast.Call), device_at_hand(self.source, site.node, site.scope)
        edit = edits.rewritten(self.source, site.node, lambda call: _made_last(call, device))
        yield Report(
            message.format(shown(site.value.text), "is" if site.target is None else "on an accelerator is"),
            label=f"`.{site.spelled}()` computes a new tensor",
            # a test may only want something to compute with
            severity=_severity(site, parameter and (site.attribute or not edits.in_test(self.source, site.scope))),
            steps=() if site.gradient is None else (site.gradient,),
            help=told,
            fix=edits.fix_of("Move first, and make a leaf of the result", edit if made_here else None),
            asked=_may_be_meant(site, parameter) or _is_replaced(self.source, site),
        )


def _may_be_meant(site: LeafMove, parameter: bool) -> bool:
    """Whether the move may well do nothing, or the leaf be wanted for something else than its gradient."""
    if site.target is None:
        return site.gradient is None
    # outside of a module nobody would register it
    if parameter and not site.scope.module and _is_fixed(site.value.node):
        return True
    # what an argument, or a call of others, has given is perhaps there; and what is meant for the host has been there
    copied = site.target.kind is not Kind.CPU and any(leaf.kind is Kind.CPU for leaf in site.value.device.leaves())
    # the gradient of a leaf may be asked of autograd
    return not copied or (not parameter and site.gradient is None)


def _is_fixed(made: ast.AST) -> bool:
    """Whether a parameter is made that collects no gradients."""
    asked = keyword_of(made, "requires_grad") if isinstance(made, ast.Call) else None
    return isinstance(asked, ast.Constant) and asked.value is False


def _makes_leaf(source: Source, site: LeafMove) -> bool:
    """Whether the copy is made without a graph, and asked for gradients of its own further down."""
    names, function = targets_of(statement_of(source, site.node)), around(source, site.node)
    contexts = (item.context_expr for outer, _ in way_to(source, site.node) for item in getattr(outer, "items", ()))
    if site.attribute or not any(map(builds_no_graph, contexts)):
        return False
    later = (part for part in walk(function) if getattr(part, "lineno", 0) > getattr(site.node, "lineno", 0))
    asked = (part.value for part in later if isinstance(part, ast.Attribute) and part.attr.startswith("requires_grad"))
    return any(ast.unparse(owner) in names for owner in asked)


def _is_replaced(source: Source, site: LeafMove) -> bool:
    """Whether another method puts something else into the attribute, as torch forbids for a registered parameter."""
    names, here = targets_of(statement_of(source, site.node)), function_at(source, site.node)
    if not site.attribute:
        return False
    assignments = (part for part in walk(source.tree) if isinstance(part, ast.Assign) and targets_of(part) == names)
    others = (ast.unparse(part.value) for part in assignments if function_at(source, part) is not here)
    return any("Parameter(" not in value for value in others)


def _plain_list(source: Source, node: ast.AST) -> str:
    """The attribute with the plain list of Python into which the result of a call is put, empty where it is none."""
    function, statement = around(source, node), statement_of(source, node)
    names = targets_of(statement)
    for call in walk(function):
        if isinstance(call, ast.Call) and method_of(call) == "append" and len(call.args) == 1:
            holder = ast.unparse(receiver(call) or call)
            lists = [isinstance(value, (ast.List, ast.ListComp)) for _, value in assigned(function).get(holder, ())]
            put = call.args[0] is node or ast.unparse(call.args[0]) in names
            if put and holder.startswith("self.") and lists and all(lists):
                return holder
    for target, held in assigned(function).items():
        shown_list = any(isinstance(value, (ast.List, ast.ListComp)) and node in _items(value) for _, value in held)
        if target.startswith("self.") and shown_list:
            return target
    return ""


def _items(node: ast.expr) -> list[ast.expr]:
    """What a display of a list, or a comprehension, puts into it."""
    return node.elts if isinstance(node, ast.List) else [node.elt] if isinstance(node, ast.ListComp) else []


def _severity(site: LeafMove, parameter: bool) -> Severity:
    if parameter or site.gradient is not None:
        # where it was before, it may be already; and to which dtype it goes, it may have
        sure = site.target is not None and site.value.device.kind is Kind.CPU
        return Severity.ERROR if sure or site.gradient is not None else Severity.WARNING
    return Severity.WARNING if site.attribute else Severity.INFO


def _made_last(call: cst.Call, at_hand: str) -> cst.BaseExpression | None:
    """A move with the leaf made last; ``None`` where that cannot be told."""
    made = call.func.value if isinstance(call.func, cst.Attribute) else None
    if not isinstance(made, cst.Call) or made.lpar:
        return None
    if isinstance(made.func, cst.Attribute) and made.func.attr.value == "requires_grad_":
        inner = _moved(made.func.value, call, at_hand)
        return None if inner is None else made.with_changes(func=made.func.with_changes(value=inner))
    if _factory(made):
        return _placed(made, call, at_hand)
    if not made.args or made.args[0].star or (made.args[0].keyword and made.args[0].keyword.value != "data"):
        return None
    first, *others = made.args
    inner = _moved(first.value, call, at_hand)
    return None if inner is None else made.with_changes(args=[first.with_changes(value=inner), *others])


def _moved(value: cst.BaseExpression, call: cst.Call, at_hand: str) -> cst.BaseExpression | None:
    """The expression, moved as ``call`` moves its own receiver: created there, where it is a factory's."""
    if isinstance(value, cst.Call) and _factory(value):
        return _placed(value, call, at_hand)
    if not isinstance(value, cst.Name | cst.Attribute | cst.Subscript | cst.Call) and not value.lpar:
        value = value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return call.with_changes(func=cst.ensure_type(call.func, cst.Attribute).with_changes(value=value))


def _factory(value: cst.Call) -> bool:
    path = edits.code(value.func)
    return path.startswith("torch.") and path.removeprefix("torch.") in _FACTORIES


def _placed(made: cst.Call, call: cst.Call, at_hand: str) -> cst.BaseExpression | None:
    """A factory call that creates where ``call`` moves to."""
    if any(arg.star or (arg.keyword and arg.keyword.value in ("device", "generator", "out")) for arg in made.args):
        return None
    mover = edits.code(call.func).rpartition(".")[2]
    if mover == "to" and len(call.args) == 1 and not call.args[0].star:
        keyword = call.args[0].keyword
        target = edits.code(call.args[0].value) if keyword is None or keyword.value == "device" else ""
        dtype = "dtype" in target or (target.startswith("torch.") and not target.startswith(DEVICE))
        return edits.with_keyword(made, "device", target) if target and not dtype else None
    if mover == "cuda" and not call.args and at_hand:
        return edits.with_keyword(made, "device", at_hand)
    return None
