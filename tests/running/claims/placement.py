"""What the rules of the family `placement` claim."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from devlint.finding import Finding
from tests.running.claims import Claim, Unobservable, raising
from tests.running.observed import Place, Run

MISMATCHES = (
    r"RuntimeError: Expected all tensors to be on the same device",
    r"RuntimeError: indices should be either on cpu or on the same device",
    r"RuntimeError: Input type .* and weight type .* should be the same",
    r"RuntimeError: Input and hidden tensors are not at the same device",
    r"RuntimeError: expected self and mask to be on the same device",
)
_RAISES_MISMATCH = raising(*MISMATCHES)


def devices_of(value: Any) -> set[str]:
    """Where the tensors of a value are: those in containers, parameters and buffers of modules."""
    owner = getattr(value, "__self__", value)
    if isinstance(owner, nn.Module):
        return {str(tensor.device) for tensor in (*owner.parameters(), *owner.buffers())}
    found = torch.utils._pytree.tree_leaves(value)
    return {str(leaf.device) for leaf in found if isinstance(leaf, torch.Tensor)}


def mismatch(finding: Finding, run: Run) -> str | None:
    """It raises there, and what the message names is where the message says."""
    if finding.message.startswith("this branch"):
        return parted(finding, run)
    if said := _RAISES_MISMATCH.shown(finding, run):
        return said
    assert run.failure
    there = next(place for place in reversed(run.failure.places) if place.meets(finding))
    return misplaced(finding.message, there)


def misplaced(message: str, place: Place) -> str | None:
    """What a message gets wrong in `A` is on the CPU but `B` is on `D`, asked of the code that runs."""
    match = re.match(r"`(.*)` (?:is|can be) on (the CPU|`.*`) but `(.*)` is on `(.*)`;", message)
    if not match:
        return f"the message is not understood: {message}"
    first, where, second, device = match.groups()
    for text, words in ((first, "cpu" if where == "the CPU" else where.strip("`")), (second, device)):
        found = devices_of(_evaluated(text, place))
        if not any(_is_device(words, device, place) for device in found):
            return f"`{text}` is on {found}, not on {words}"
    return None


def _is_device(words: str, device: str, place: Place) -> bool:
    """Whether a tensor's device is what the words say; a name from elsewhere stands for an accelerator."""
    value = _evaluated(words, place)
    said = words if words.startswith(("cpu", "cuda")) else "cuda" if value is None else str(value)
    return device in (said, f"{said}:0")


def _evaluated(text: str, place: Place) -> Any:
    try:
        return eval(text, place.frame.f_globals, place.frame.f_locals)
    except (NameError, SyntaxError):
        return None


def parted(finding: Finding, run: Run) -> str | None:
    """The branch was taken, and what it left behind was used together with what it moved."""
    if not run.seen(run.node(finding)):
        return "the branch was not taken"
    text = run.failure.text if run.failure else "nothing was raised"
    return None if any(re.match(pattern, text) for pattern in MISMATCHES) else text


def itself(node: ast.AST) -> Iterable[ast.expr]:
    """The value of what is underlined."""
    return [node] if isinstance(node, ast.expr) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load) else []


CLAIMS: dict[str, Claim | Unobservable] = {
    "DVL101": Claim(mismatch, watches=itself, raises=True),
}
