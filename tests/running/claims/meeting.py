"""What rules claim whose mistakes let tensors of different devices meet."""

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

GENERATORS = "RuntimeError: Expected a '(cpu|cuda)' device type for generator but found '(cuda|cpu)'"
MISMATCHES = (
    r"RuntimeError: Expected all tensors to be on the same device",
    r"RuntimeError: indices should be either on cpu or on the same device",
    r"RuntimeError: Input type .* and weight type .* should be the same",
    r"RuntimeError: Input and hidden tensors are not at the same device",
    r"RuntimeError: expected self and mask to be on the same device",
    r"RuntimeError: .*invalid gradient at index \d+ - expected device",
    GENERATORS,
)
NOT_FOR_NCCL = r"RuntimeError: No backend type associated with device type cpu"
_REFUSED = r"TypeError: cannot assign '(?:list|tuple|dict)' as child module"
_RAISES_MISMATCH = raising(*MISMATCHES)


def devices_of(value: Any) -> set[str]:
    """Where the tensors of a value are: those in containers, parameters and buffers of modules; or a generator."""
    if isinstance(value, torch.Generator):
        return {str(value.device)}
    owner = getattr(value, "__self__", value)
    if isinstance(owner, nn.Module):
        return {str(tensor.device) for tensor in (*owner.parameters(), *owner.buffers())}
    found = torch.utils._pytree.tree_leaves(value)
    return {str(leaf.device) for leaf in found if isinstance(leaf, torch.Tensor)}


def mismatch(finding: Finding, run: Run) -> str | None:
    """It raises there, and what the message names is where the message says."""
    if finding.message.startswith("this branch"):
        return parted(finding, run)
    if "on one path, on the other" in finding.message:
        found = devices_of(run.seen(run.node(finding)))
        return None if "cpu" in found else f"it is on {found}"
    if said := _RAISES_MISMATCH.shown(finding, run):
        return said
    assert run.failure
    there = next(place for place in reversed(run.failure.places) if place.meets(finding))
    return misplaced(finding.message, there)


def misplaced(message: str, place: Place) -> str | None:
    """What a message gets wrong in `A` is on the CPU but `B` is on `D`, asked of the code that runs."""
    message = re.sub("is where the caller keeps `(.*)`;", r"is on `\1.device`;", message)
    operand = "(`.*`|what `.*` makes)"
    places = "(the CPU|`.*`|the module's device)"
    match = re.match(rf"{operand} (?:is|can be) on {places} but {operand} is on {places};", message)
    unplaced = re.match(r"`(.*)` is on (`.*`), and nothing here puts `(.*)` there", message)
    if match:
        first, where, second, device = match.groups()
    elif unplaced:
        first, where, second, device = unplaced[3], "the CPU", unplaced[1], unplaced[2]
    else:
        return f"the message is not understood: {message}"
    for said, words in ((first, "cpu" if where == "the CPU" else where.strip("`")), (second, device.strip("`"))):
        if said.startswith("what "):
            # it was not made, since that raises
            continue
        text = said.strip("`")
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


def stray(finding: Finding, run: Run) -> str | None:
    """What was made on the CPU meets the accelerator later, or copies to and fro."""
    node = run.node(finding)
    values = run.seen(receiver(node) or node)
    places = {device for value in values for device in devices_of(value)}
    if places != {"cpu"}:
        return f"it is on {places}"
    if match := re.search(r"copies (?:the index )?(to the CPU|there)", finding.message):
        return counted(run, target="cpu") if match[1] == "to the CPU" else counted(run, source="cpu")
    if "at every" in finding.message or "by hand" in finding.message:
        return counted(run, source="cpu", repeats="at every" in finding.message)
    text = run.failure.text if run.failure else "nothing was raised"
    expected = (NOT_FOR_NCCL,) if "NCCL" in finding.message else MISMATCHES
    return None if any(re.match(pattern, text) for pattern in expected) else text


def left_with_it(finding: Finding, run: Run) -> str | None:
    """What a distribution holds is on the CPU when it meets the accelerator."""
    held = [
        tensor for value in run.seen(run.node(finding)) for tensor in vars(getattr(value, "base_dist", value)).values()
    ]
    places = devices_of(held)
    if places != {"cpu"}:
        return f"it is on {places}"
    text = run.failure.text if run.failure else "nothing was raised"
    return None if any(re.match(pattern, text) for pattern in MISMATCHES) else text


def passed_over(finding: Finding, run: Run) -> str | None:
    """The module was moved, and its own move was not called."""
    match = re.match(r"a module that contains this `(\w+)`", finding.message)
    assert match, finding.message
    owners = [thing for thing in run.objects if type(thing).__name__ == match[1]]
    moved = [owner for owner in owners if any(weight.device.type != "cpu" for weight in owner.parameters())]
    if not moved:
        return f"no `{match[1]}` was moved"
    return "its own move was called" if run.seen(run.node(finding)) else None


def receiver(node: ast.AST) -> ast.expr | None:
    """The tensor that a move is asked of."""
    is_move = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "to"
    return node.func.value if is_move else None


def itself_or_receiver(node: ast.AST) -> Iterable[ast.expr]:
    """What is underlined, and the tensor it moves."""
    return [*itself(node), *filter(None, [receiver(node)])]


def counted(run: Run, source: str = "", target: str = "", repeats: bool = False) -> str | None:
    """There are such copies, of the same tensor again and again if ``repeats``."""
    events = run.process.events if run.process else ()
    copies = [event for event in events if event.kind == "copy" and (event.source == source or event.target == target)]
    found = sum(event.repeats if repeats else event.calls for event in copies)
    return None if found else f"no such copies among {[(event.name, event.calls) for event in events]}"


def managed(finding: Finding, run: Run) -> str | None:
    """What a library has placed stays where it is, or leaves the device that the library has chosen."""
    values = run.seen(run.node(finding))
    if not values:
        return "it was not reached"
    if "hook of Lightning" in finding.message:
        chosen = {str(owner.device) for owner in run.objects if hasattr(owner, "device")}
        return None if chosen and not devices_of(values) & chosen else f"it is on {devices_of(values)}, as the module"
    return None if run.events(finding, "move") else "something was moved"


def left_behind(finding: Finding, run: Run) -> str | None:
    """The modules of a plain container stay where they are, and their parameters are unknown to its owner."""
    match = re.match(r"`self\.(\w+)` is a plain \w+, whose modules `(\w+)` does not know", finding.message)
    assert match, finding.message
    owners = [thing for thing in run.objects if type(thing).__name__ == match[2]]
    copies = [event for event in (run.process.events if run.process else ()) if event.kind == "copy"]
    for owner in owners:
        if not copies and list(owner.parameters()):
            return f"`{match[2]}` was not moved"
        held = contained(getattr(owner, match[1]))
        unknown = [weight for module in held for weight in module.parameters()]
        known = {id(weight) for weight in (*owner.parameters(), *owner.state_dict(keep_vars=True).values())}
        if unknown and all(id(weight) not in known and weight.device.type == "cpu" for weight in unknown):
            return None
        return "its modules were moved, or are known"
    return f"no `{match[2]}` was made"


def refused(finding: Finding, run: Run) -> str | None:
    """A module does not let a container take the place of a submodule."""
    text = run.failure.text if run.failure else "nothing was raised"
    return None if re.match(_REFUSED, text) else text


def contained(value: Any) -> list[nn.Module]:
    """The modules in a plain container."""
    values = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return [held for held in values if isinstance(held, nn.Module)]


def strangers(run: Run) -> Iterable[str]:
    """Modules in the public plain containers of a module which does not know their parameters."""
    for owner in run.objects:
        if not isinstance(owner, nn.Module):
            continue
        known = {id(weight) for weight in owner.parameters()}
        for name, value in vars(owner).items():
            if not name.startswith("_") and any(
                id(weight) not in known for module in contained(value) for weight in module.parameters()
            ):
                yield f"`{name}` of `{type(owner).__name__}` holds modules that it does not know"


CLAIMS: dict[str, Claim | Unobservable] = {
    "DVL101": Claim(mismatch, watches=itself, raises=True),
    "DVL103": Claim(stray, watches=itself, causal=True),
    "DVL104": Claim(
        stray,
        watches=itself_or_receiver,
        causal=True,
        others={
            "moves it without calling": Claim(passed_over, watches=itself),
            "is no part of the module": Claim(left_with_it, watches=itself, ends="|".join(MISMATCHES)),
        },
    ),
    "DVL114": Claim(managed, watches=itself, ends="|".join(MISMATCHES)),
    "DVL105": Claim(
        left_behind,
        absent=strangers,
        others={"this raises": Claim(refused, ends=_REFUSED)},
    ),
}
