"""How each rule's mistake shows in a run: what was shown, in one line, or nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import nn

from devlint.auditor.explanation.messages import is_mismatch
from devlint.prove.claim import Claim, Rows
from devlint.prove.running.trial import MEETING, RECEIVER, VALUE, Step, Trial, devices_of

_NUMPY = r"can't convert \w+(:\d+)? device type tensor to numpy"
_LENGTHS = r"'lengths' argument should be a 1D CPU int64 tensor|RNG state must be a torch.ByteTensor"
_REFUSED = r"cannot assign '\w+' as child module"
_OWNED = re.compile(r"`self\.(\w+)` is a plain \w+, whose modules `(\w+)` does not know")


def shown(claim: Claim, trial: Trial) -> str:
    """What a run shows of a claim; empty if it shows nothing of it."""
    return _SIGNS[claim.code](claim, trial)


def is_causal(claim: Claim) -> bool:
    """Whether the finding names a cause that harms elsewhere, so that the harm has to be gone where it is mended."""
    return claim.code in MEETING


def _mismatch(claim: Claim, trial: Trial) -> str:
    if trial.error is None or not is_mismatch(trial.error):
        return ""
    if claim.is_of_a_path:
        inner = trial.inner(claim.file)
        return _told(trial, inner) if inner is not None and trial.reached(claim.rows) else ""
    return _raised_at(trial, (claim.rows,))


def _raised(pattern: str, claim: Claim, trial: Trial) -> str:
    if trial.error is None or not re.search(pattern, str(trial.error)):
        return ""
    return _raised_at(trial, (claim.rows,))


def _raised_at(trial: Trial, places: tuple[Rows, ...]) -> str:
    """What was raised in one of the places, or in a module that was called there."""
    for step in reversed(trial.steps):
        if any(place.hold(step.file, step.first, step.last) for place in places):
            return _told(trial, step)
        if any(step.file == place.file for place in places) and not step.of_module:
            return ""
    return ""


def _told(trial: Trial, step: Step) -> str:
    return f"{trial.said} raised at {where(step)}"


def where(step: Step) -> str:
    """A place in a file as it is told."""
    return f"{step.file}:{step.first}"


def _dropped(claim: Claim, trial: Trial) -> str:
    is_converted = "converted" in claim.message
    kind, on = ("dtype", "") if is_converted else ("device", "on ")
    for before, after in zip(trial.values.get(RECEIVER, ()), trial.values.get(VALUE, ()), strict=False):
        if isinstance(before, torch.Tensor) and isinstance(after, torch.Tensor) and before is not after:
            one, other = getattr(before, kind), getattr(after, kind)
            if one != other:
                made = f"another tensor, which is {on}{other} and is dropped"
                return f"the call at line {claim.span[0]} returns {made}; its receiver stays {on}{one}"
    return ""


def _stray(claim: Claim, trial: Trial) -> str:
    if not any("cpu" in devices_of(value) for value in _speaking(trial)):
        return ""
    harm = _harm(claim, trial)
    return f"{harm}; the tensor in question is on cpu" if harm else ""


def _speaking(trial: Trial) -> Iterator[Any]:
    """The values that the finding speaks of; of a move it is what is moved."""
    yield from trial.values.get(VALUE, ())
    yield from (value for value in trial.values.get(RECEIVER, ()) if isinstance(value, torch.Tensor))


def _harm(claim: Claim, trial: Trial) -> str:
    if trial.error is not None and is_mismatch(trial.error):
        return _raised_at(trial, claim.harm)
    for step, text in trial.meetings:
        if any(place.hold(step.file, step.first, step.last) for place in claim.harm):
            ended = f" (the call ends later with {trial.said})" if trial.error is not None else ""
            return f"{text} at {where(step)}, in each call{ended}"
    return ""


def remains(claim: Claim, before: Trial, mended: Trial) -> bool:
    """Whether the same is raised where what the finding speaks of is on the accelerator from the beginning."""
    if before.error is None or mended.error is None:
        return False
    return bool(_harm(claim, mended)) and before.steps[-1:] == mended.steps[-1:] and before.said == mended.said


def _left_behind(claim: Claim, trial: Trial) -> str:
    match = _OWNED.match(claim.message)
    if match is None:
        return _raised(_REFUSED, claim, trial)
    for owner in _modules(trial.names):
        if match[2] not in {base.__name__ for base in type(owner).__mro__}:
            continue
        value = getattr(owner, match[1], None)
        held = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
        weights = [weight for module in held if isinstance(module, nn.Module) for weight in module.parameters()]
        known = {id(weight) for weight in owner.parameters()}
        if weights and all(id(weight) not in known and weight.device.type == "cpu" for weight in weights):
            number = f"the {len(weights)} parameters" if len(weights) > 1 else "the parameter"
            return (
                f'after `.to("cuda")` {number} of the modules in `{match[1]}` '
                f"{'are' if len(weights) > 1 else 'is'} on cpu, and not among `.parameters()`"
            )
    return ""


def _no_leaf(claim: Claim, trial: Trial) -> str:
    known = {id(weight) for owner in _modules(trial.names) for weight in owner.parameters()}
    for value in trial.values.get(VALUE, ()):
        if not isinstance(value, torch.Tensor):
            continue
        if "no parameter" in claim.message:
            if not isinstance(value, nn.Parameter) and id(value) not in known:
                return f"what the move returns is a plain tensor on {value.device}, and no parameter of the module"
        elif not value.is_leaf and value.grad_fn is not None:
            return f"what the move returns is on {value.device} and no leaf: it gets no gradient"
    return ""


def _modules(names: dict[str, Any]) -> Iterator[nn.Module]:
    return (value for value in names.values() if isinstance(value, nn.Module))


_SIGNS: dict[str, Callable[[Claim, Trial], str]] = {
    "DVL101": _mismatch,
    "DVL102": _dropped,
    "DVL103": _stray,
    "DVL104": _stray,
    "DVL105": _left_behind,
    "DVL106": _no_leaf,
    "DVL107": partial(_raised, _NUMPY),
    "DVL108": partial(_raised, _LENGTHS),
}
