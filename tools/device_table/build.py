"""Puts together what execution, declarations and hand have to say of each function."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import torch

from tools.device_table import aten, fake, hand
from tools.device_table.factories import Factory, probe
from tools.device_table.fake import Call
from tools.device_table.modules import modules
from tools.device_table.observe import Observation, observe
from tools.device_table.opinfo import opinfo_calls
from tools.device_table.signatures import parameters_of
from tools.device_table.synthetic import known_calls, schema_calls, signature_calls
from tools.device_table.universe import device_constructors, universe

Entry = dict[str, Any]


class ContradictionError(Exception):
    """Execution disproves what was written down by hand."""


def build(progress: Callable[[str], None]) -> dict[str, Any]:
    """The whole table, for the installed torch."""
    functions = universe()
    parameters = {name: parameters_of(name, function) for name, function in functions.items()}
    observations = _observe_all(functions, parameters, progress)
    constructors = device_constructors()
    entries = {}
    for name, function in functions.items():
        entry = _entry(name, function, observations.get(name))
        if name in constructors:
            entry["honours_default_device"] = True
        entry["parameters"] = parameters[name]
        _apply_hand(name, entry)
        _verify(name, entry)
        entries[name] = entry
    progress("modules")
    return {
        "torch": torch.__version__.partition("+")[0],
        "device_constructors": constructors,
        "functions": entries,
        "modules": modules(),
    }


def _observe_all(
    functions: dict[str, Any], parameters: dict[str, tuple[str, ...]], progress: Callable[[str], None]
) -> dict[str, Observation]:
    """Run every function for which there is, or can be made up, input that it takes."""
    seen: dict[str, Observation] = defaultdict(Observation)
    progress(f"{len(functions)} functions; running those with samples")
    for name, call in opinfo_calls(functions):
        observe(seen[name], name, functions[name], parameters[name], call)
    progress(f"{_worked(seen)} ran; making up input for the others")
    for name, function in functions.items():
        attempts = [known_calls(name, function)]
        if not seen[name].samples:
            attempts += schema_calls(name, function)
        _first_that_work(seen[name], name, function, parameters[name], attempts)
        if not seen[name].samples:
            _first_that_work(seen[name], name, function, parameters[name], [signature_calls(function)])
    progress(f"{_worked(seen)} ran")
    return {name: observation for name, observation in seen.items() if observation.samples}


def _first_that_work(
    seen: Observation, name: str, function: Any, parameters: tuple[str, ...], attempts: Iterable[list[Call]]
) -> None:
    """Of each list, observe the first call that the function takes."""
    for calls in attempts:
        for call in calls:
            if observe(seen, name, function, parameters, call):
                break


def _worked(seen: dict[str, Observation]) -> int:
    return sum(observation.samples > 0 for observation in seen.values())


def _entry(name: str, function: Any, seen: Observation | None) -> Entry:
    factory = probe(name, function)
    declared = aten.declared(name)
    takes_device = aten.takes_device(name, function)
    entry: Entry = {"device_check": aten.device_check(name), "device_kwarg": takes_device}
    if factory is not None:
        entry |= _factory_entry(factory)
    elif seen is not None:
        rule = _rule_of_results(seen, takes_device=takes_device)
        entry |= {"rule": rule or (declared.rule if declared else "unknown"), "sync": seen.sync()}
    elif declared is not None:
        entry["rule"] = declared.rule
    elif name.startswith("torch.Tensor.") and not callable(function):
        entry |= _attribute_entry(name.rsplit(".", 1)[1])
    else:
        entry["rule"] = "unknown"
    if seen is not None:
        rejects_scalar = entry["device_check"] != "ExactSame" and seen.rejects_scalar()
        entry |= {"rejects_cpu": seen.rejects(), "accepts_cpu_scalar": False if rejects_scalar else None}
    if entry.get("sync") is None and ((declared and declared.waits) or aten.documents_sync(name, function)):
        entry["sync"] = "always"
    return entry


def _factory_entry(factory: Factory) -> Entry:
    return {
        "rule": factory.rule,
        "device_kwarg": factory.device_kwarg,
        "honours_default_device": factory.honours_default_device,
    }


def _rule_of_results(seen: Observation, *, takes_device: bool) -> str | None:
    """The rule by which every result of a function was where it was; None if no result was seen."""
    known = set(seen.results) - {"unknown"}
    places = known - {"python", "nothing"}
    if not known:
        return None
    if not places:
        return "none" if known == {"nothing"} else "python"
    if places == {"cpu"} and not (takes_device and seen.without_tensors):
        return "cpu"
    if seen.without_tensors == seen.samples:
        return "default_or_kwarg" if takes_device else "default"
    if places == {"gpu"}:
        return "like_input_or_kwarg" if takes_device else "same_as_input"
    return "mixed:" + ",".join(sorted(places))


def _attribute_entry(attribute: str) -> Entry:
    """What reading an attribute of a tensor gives."""
    try:
        with fake.strict_mode():
            where = fake.device_of(getattr(torch.empty(3, 3, device=fake.ACCELERATOR), attribute))
    except fake.SYNCHRONISES:
        return {"rule": "python", "sync": "always"}
    return {"rule": {"gpu": "same_as_input", "nothing": "none"}.get(where, where)}


def _apply_hand(name: str, entry: Entry) -> None:
    """Let what is known by hand stand over what was seen, unless that disproves it."""
    if name in hand.RULES:
        entry["rule"] = hand.RULES[name]
    if name in hand.SYNCS:
        entry["sync"] = hand.SYNCS[name]
    entry["must_be_cpu"] = hand.MUST_BE_CPU.get(name, frozenset())
    entry["accepts_cpu"] = hand.ACCEPTS_CPU.get(name, frozenset())
    entry["rejects_cpu"] = (entry.get("rejects_cpu", frozenset()) | _rejected_on_cuda(name, entry)) - (
        hand.NOT_REJECTED_ON_CUDA.get(name, frozenset()) | entry["must_be_cpu"]
    )


def _rejected_on_cuda(name: str, entry: Entry) -> frozenset[str]:
    """What CUDA is known to reject beyond what was seen."""
    if name in hand.REJECTS_CPU_BY_KERNEL and entry["device_check"] != "ExactSame":
        raise ContradictionError(f"the CUDA kernel of {name} is not declared to check the devices of all tensors")
    return hand.REJECTS_CPU_ON_CUDA.get(name, frozenset()) | hand.REJECTS_CPU_BY_KERNEL.get(name, frozenset())


def _verify(name: str, entry: Entry) -> None:
    """Nothing is left open, and what was written by hand fits the function."""
    if entry["rule"] == "unknown" or entry["rule"].startswith("mixed"):
        raise ContradictionError(f"nothing is known of where the result of {name} lives: add a rule by hand")
    if both := entry["accepts_cpu"] & entry["rejects_cpu"]:
        raise ContradictionError(f"{name} rejects CPU tensors for {sorted(both)}, which it was trusted to accept")
    spelled = {parameter.removeprefix("*") for parameter in entry["parameters"]}
    if unknown := (entry["accepts_cpu"] | entry["must_be_cpu"]) - spelled:
        raise ContradictionError(f"{name} has no parameter {sorted(unknown)}, only {sorted(spelled)}")
