"""What the other rules of the family `placement` claim."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from types import FunctionType
from typing import Any

import torch
from torch import nn

from devlint.finding import Finding
from tests.running.arguments import stepped
from tests.running.claims import Claim, Unobservable, raising
from tests.running.instrument import functions
from tests.running.observed import Run


def itself(node: ast.AST) -> Iterable[ast.expr]:
    """The value of what is underlined."""
    return [node] if isinstance(node, ast.expr) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load) else []


def call_and_receiver(node: ast.AST) -> Iterable[ast.expr]:
    """A method call and the object it is called on, or the method itself."""
    if isinstance(node, ast.Attribute):
        return [node]
    return [node, node.func.value] if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else []


def dropped(finding: Finding, run: Run) -> str | None:
    """The call makes another tensor, and its receiver stays as it was; or what has its name is a method."""
    call = run.node(finding)
    if isinstance(call, ast.Attribute):
        return None if any(map(callable, run.seen(call))) else "it is no method, or was not reached"
    assert isinstance(call, ast.Call)
    assert isinstance(call.func, ast.Attribute)
    pairs = list(zip(run.seen(call.func.value), run.seen(call), strict=True))
    kind = "dtype" if "converted" in finding.message else "device"
    if any(one is not other and getattr(one, kind) != getattr(other, kind) for one, other in pairs):
        return None
    return f"{len(pairs)} calls, of which none made a tensor with another {kind}"


def moves_as_statements(tree: ast.Module) -> Iterator[ast.expr]:
    """Moves of named tensors that are statements of their own, where the name is used afterwards."""
    for function in functions(tree):
        names = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
        for node in ast.walk(function):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                root = node.value.func
                while isinstance(root, ast.Attribute | ast.Subscript):
                    root = root.value
                last = max(
                    (name.lineno for name in names if isinstance(root, ast.Name) and name.id == root.id), default=0
                )
                if last > node.lineno:
                    yield from call_and_receiver(node.value)


def nothing_dropped(run: Run) -> Iterator[str]:
    """A tensor that such a statement leaves where it is."""
    watched = {id(node): node for node in moves_as_statements(run.fixture.tree)}
    for node in watched.values():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            for one, other in zip(run.seen(node.func.value), run.seen(node), strict=True):
                tensors = isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor)
                if tensors and one.device != other.device:
                    yield f"row {node.lineno} drops the moved tensor"


def no_leaf(finding: Finding, run: Run) -> str | None:
    """The copy is no parameter that a module knows, or no leaf, so that it gets no gradient."""
    values = run.seen(run.node(finding))
    if not values:
        return "it was not reached"
    if "no parameter" in finding.message:
        known = [weight for thing in run.objects if isinstance(thing, nn.Module) for weight in thing.parameters()]
        bad = [isinstance(value, nn.Parameter) or any(value is weight for weight in known) for value in values]
    else:
        bad = [value.is_leaf or value.grad is not None for value in values]
    return "it is a parameter or a leaf" if any(bad) else None


def made_before(finding: Finding, run: Run) -> str | None:
    """The optimizer's state is left behind, so that its step raises; or it goes on with the old parameters."""
    for optimizer in run.seen(run.node(finding)):
        weights = [weight for group in optimizer.param_groups for weight in group["params"]]
        if "its step raises" not in finding.message:
            return None if any(weight.device.type == "cpu" for weight in weights) else "its parameters have moved"
        try:
            stepped(optimizer)
        except RuntimeError as error:
            return None if "same device" in str(error) else str(error)
        return "its step raises nothing"
    return "it was not reached"


def comparison(node: ast.AST) -> Iterable[ast.expr]:
    """A comparison and its operands, or a question for a type."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
        return [node, *node.args[:1]]
    if not isinstance(node, ast.Compare):
        return []
    # what is asked for the name of its type
    asked = (
        [node.left.func.value] if isinstance(node.left, ast.Call) and isinstance(node.left.func, ast.Attribute) else []
    )
    return [node, node.left, *node.comparators, *asked]


_MEMBERSHIP = raising("TypeError: argument of type 'torch.device' is not iterable")


def always(finding: Finding, run: Run) -> str | None:
    """The comparison has the one outcome, also where what is compared is the same device."""
    if " raises:" in finding.message:
        return _MEMBERSHIP.shown(finding, run)
    node = run.node(finding)
    if " for every tensor on an accelerator" in finding.message:
        return _of_no_type(finding, run)
    assert isinstance(node, ast.Compare)
    match = re.search(r"is always (True|False):", finding.message)
    assert match, finding.message
    outcomes = run.seen(node)
    if any(str(outcome) != match[1] for outcome in outcomes):
        return f"it is {outcomes}"
    pairs = zip(run.seen(node.left), run.seen(node.comparators[0]), strict=True)
    return None if any(is_meant(one, other) for one, other in pairs) else "it never compared what is meant to be equal"


def _of_no_type(finding: Finding, run: Run) -> str | None:
    """The question has that outcome for a tensor on an accelerator, one of the type that is meant."""
    node = run.node(finding)
    asked = node.left if isinstance(node, ast.Compare) else next(iter(node.args), None)
    if isinstance(asked, ast.Call) and isinstance(asked.func, ast.Attribute):
        asked = asked.func.value
    tensors = [value for value in run.seen(asked) if isinstance(value, torch.Tensor)] if asked is not None else []
    if all(tensor.device.type == "cpu" for tensor in tensors):
        return "no tensor was on an accelerator"
    match = re.search(r"is (True|False) for", finding.message)
    return None if match and all(str(value) == match[1] for value in run.seen(node)) else "it is something else"


def is_meant(one: Any, other: Any) -> bool:
    """Whether a reader takes them for the same device; what this machine cannot have is never the same."""
    if isinstance(other, tuple | list):
        return any(is_meant(one, each) for each in other)
    first, second = str(one), str(other)
    return (
        first == second
        or first.partition(":")[0] == second.partition(":")[0]
        or {"gpu", "mps", "xpu"} & {first, second} != set()
    )


def is_function(finding: Finding, run: Run) -> str | None:
    """A function stands where its answer is meant."""
    values = run.seen(run.node(finding))
    if not values:
        return "it was not reached"
    return None if all(isinstance(value, bool) is False and callable(value) for value in values) else f"it is {values}"


def conditions(tree: ast.Module) -> Iterator[ast.expr]:
    """All that is asked whether it is true."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If | ast.IfExp | ast.While | ast.Assert):
            yield node.test
        elif isinstance(node, ast.BoolOp):
            yield from node.values[:-1]  # the last one is the result
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield node.operand


def no_function_asked(run: Run) -> Iterator[str]:
    """A function of torch is asked whether it is true."""
    for node in conditions(run.fixture.tree):
        for value in run.seen(node):
            if isinstance(value, FunctionType) and value.__module__.startswith("torch"):
                yield f"row {node.lineno} asks whether `{value.__qualname__}` is true"


def calls(tree: ast.Module) -> Iterator[ast.expr]:
    """The results of all calls."""
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def unused(finding: Finding, run: Run) -> str | None:
    """An accelerator was chosen, and nothing is there: no tensor that a call returned."""
    values = [value for node in calls(run.fixture.tree) for value in run.seen(node)]
    tensors = [leaf for leaf in torch.utils._pytree.tree_leaves(values) if isinstance(leaf, torch.Tensor)]
    if not tensors:
        return "there were no tensors"
    return "something is on the accelerator" if any(tensor.device.type != "cpu" for tensor in tensors) else None


_REFUSED = raising(".")


def invalid(finding: Finding, run: Run) -> str | None:
    """It raises."""
    return _REFUSED.shown(finding, run)


INVALID = Claim(invalid, raises=True, leaves_out_call=True)

CLAIMS: dict[str, Claim | Unobservable] = {
    "DVL102": Claim(dropped, nothing_dropped, call_and_receiver, moves_as_statements),
    "DVL106": Claim(
        no_leaf,
        watches=itself,
        ends=r"(Type|Value)Error: (cannot assign '.*' (as|object to) parameter"
        r"|Cannot assign non-leaf Tensor to parameter|can't optimize a non-leaf Tensor)",
    ),
    "DVL107": raising(r"TypeError: can't convert cuda:\d device type tensor to numpy"),
    "DVL108": raising(
        r"RuntimeError: 'lengths' argument should be a 1D CPU int64 tensor, but got 1D cuda:0 Long tensor"
        r"|TypeError: (RNG state must be a torch.ByteTensor|expected a torch.ByteTensor)"
    ),
    "DVL109": Claim(made_before, watches=itself),
    "DVL110": Claim(always, watches=comparison, raises=False, ends=r"TypeError: argument of type 'torch.device'"),
    "DVL111": Claim(
        is_function,
        no_function_asked,
        itself,
        conditions,
        ends="TypeError: .* must be bool, not function",
        leaves_out_call=True,
    ),
    "DVL112": INVALID,
    "DVL113": Claim(unused, surveys=calls),
}
