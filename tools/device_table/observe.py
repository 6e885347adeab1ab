"""What execution shows of a function: where its results live, whether the host waits, which mixtures it rejects."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.utils._pytree as pytree

from tools.device_table import fake
from tools.device_table.fake import ACCELERATOR, CPU, Call
from tools.device_table.signatures import declared_parameters

_MOST_TENSORS_MIXED = 6


@dataclass
class Mixture:
    """What a function did with one argument on the CPU and all others on the accelerator."""

    rejected: int = 0
    accepted: int = 0
    unclear: int = 0


@dataclass
class Observation:
    """All that was seen of one function."""

    results: Counter[str] = field(default_factory=Counter)
    waits: int = 0
    without_tensors: int = 0
    mixtures: dict[str, Mixture] = field(default_factory=lambda: defaultdict(Mixture))
    scalar_mixtures: dict[str, Mixture] = field(default_factory=lambda: defaultdict(Mixture))

    @property
    def samples(self) -> int:
        """How many calls worked."""
        return self.results.total()

    def sync(self) -> str | None:
        """Whether the host waits always, sometimes or never."""
        if not self.waits:
            return None
        return "always" if self.waits == self.samples else "sometimes"

    def rejects(self) -> set[str]:
        """Parameters whose n-d CPU tensor was rejected and never accepted."""
        return {name for name, seen in self.mixtures.items() if seen.rejected and not seen.accepted}

    def accepts(self) -> set[str]:
        """Parameters whose n-d CPU tensor was accepted and never rejected: not yet true of a real accelerator."""
        return {name for name, seen in self.mixtures.items() if seen.accepted and not seen.rejected}

    def rejects_scalar(self) -> bool:
        """Whether a 0-dim CPU tensor was rejected for some parameter, and never accepted for that one."""
        return any(seen.rejected and not seen.accepted for seen in self.scalar_mixtures.values())


def observe(seen: Observation, name: str, function: object, parameters: tuple[str, ...], call: Call) -> bool:
    """Run one call on the accelerator, then with each tensor in turn on the CPU. False if it did not work at all."""
    outcome = fake.run(call, [ACCELERATOR], strict=True)
    if outcome.kind == "mismatch":
        return False
    waits = outcome.kind == "synchronised"
    if outcome.kind != "returned":
        outcome = fake.run(call, [ACCELERATOR], strict=False)
        if outcome.kind != "returned" and not waits:
            return False
    seen.results[outcome.where or "unknown"] += 1
    seen.waits += waits
    tensors = list(_tensor_arguments(call, _names_for(call, name, function, parameters)))
    seen.without_tensors += not tensors
    if len(tensors) > 1:
        _observe_mixtures(seen, call, tensors, known=function is call.function, parameters=parameters)
    return True


def _observe_mixtures(
    seen: Observation, call: Call, tensors: list[tuple[str, int]], *, known: bool, parameters: tuple[str, ...]
) -> None:
    spelled = {parameter.removeprefix("*") for parameter in parameters}
    for index, (parameter, dimensions) in enumerate(tensors[:_MOST_TENSORS_MIXED]):
        if parameter not in spelled and not (known and parameter in call.keywords):
            continue
        devices = [ACCELERATOR] * len(tensors)
        devices[index] = CPU
        mixture = (seen.mixtures if dimensions else seen.scalar_mixtures)[parameter]
        match fake.run(call, devices, strict=False).kind:
            case "mismatch":
                mixture.rejected += 1
            case "returned":
                mixture.accepted += 1
            case _:
                mixture.unclear += 1


def _names_for(call: Call, name: str, function: object, parameters: tuple[str, ...]) -> tuple[str, ...]:
    """The names of the call's positional arguments. A wrapper may take them in another order than the function."""
    if call.function is function:
        return parameters
    declared = declared_parameters(call.function)
    if declared is None:
        return parameters
    receiver, other = ("self", "input") if name.startswith("torch.Tensor.") else ("input", "self")
    return tuple(receiver if declared_name == other else declared_name for declared_name in declared)


def _tensor_arguments(call: Call, names: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    """Parameter and number of dimensions for every tensor of a call, those in lists included."""
    for position, argument in enumerate(call.arguments):
        if position < len(names):
            name = names[position].removeprefix("*")
        else:
            name = names[-1][1:] if names and names[-1].startswith("*") else ""
        yield from ((name, dimensions) for dimensions in _dimensions(argument))
    for name, argument in call.keywords.items():
        yield from ((name, dimensions) for dimensions in _dimensions(argument))


def _dimensions(argument: Any) -> list[int]:
    return [leaf.dim() for leaf in pytree.tree_leaves(argument) if isinstance(leaf, torch.Tensor)]
