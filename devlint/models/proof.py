"""Proof: a row beside what a call of the entry has shown on the simulated accelerator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from devlint.flow.catalog.libraries import Catalog
from devlint.flow.catalog.schema import OBJECTS, Row
from devlint.models import arguments, entries, observation
from devlint.models.arguments import ERRORS, PLACES, CannotCallError, Given, said

_ARGUMENT = "argument:"
_FIXED = {"cpu": "cpu", "default": "cpu", "accelerator": "cuda"}


@dataclass
class Verdict:
    """What came of an entry: what a run has shown, where it differs, and why there is nothing to see."""

    key: str
    shown: dict[str, None] = field(default_factory=dict)
    differs: dict[str, None] = field(default_factory=dict)
    unproven: str = ""

    def compare(self, word: str, stated: str, seen: str) -> None:
        """A word of the row states one thing, and the run has shown another, or the same."""
        if stated == seen:
            self.shown[word] = None
        else:
            self.differs[f"stated {word} `{stated}`, the run says `{seen}`"] = None


def prove(key: str, catalog: Catalog) -> Verdict:
    """Call an entry, and compare what it does with its row."""
    row, verdict = catalog.row(key), Verdict(key)
    if row is None or "*" in key or "[" in key:
        verdict.unproven = "a pattern, of which there is nothing to call"
        return verdict
    try:
        entry, receiver = entries.entry(key, catalog)
        if row.alias_of:
            same = entry is entries.found(row.alias_of)
            verdict.compare("alias-of", row.alias_of, row.alias_of if same else _name(entry))
        elif row.speaks_of_calls or row.moves:
            _try(verdict, row, entry, receiver)
        else:
            verdict.unproven = "nothing that a call could show"
    except CannotCallError as error:
        verdict.unproven = f"cannot be called: {error}"
    except ERRORS as error:
        verdict.unproven = f"cannot be looked at: {said(error)}"
    if not verdict.shown and not verdict.differs and not verdict.unproven:
        verdict.unproven = "nothing that a call could show"
    return verdict


def _name(value: Any) -> str:
    return f"{getattr(value, '__module__', '?')}.{getattr(value, '__qualname__', value)}"


def _try(verdict: Verdict, row: Row, entry: Callable[..., Any], receiver: Any) -> None:
    """Call it with each kind of argument that it may take, and keep what agrees with the row, else what came first."""
    tried = [_with(text, row, entry, receiver) for text in arguments.texts(row, entry)]
    called = [one for one in tried if one.shown or one.differs]
    best = next((one for one in called if not one.differs), called[0] if called else None)
    if best is not None:
        verdict.shown, verdict.differs = best.shown, best.differs
    elif any(one.unproven for one in tried):
        raise CannotCallError(next(one.unproven for one in tried if one.unproven))


def _with(text: str, row: Row, entry: Callable[..., Any], receiver: Any) -> Verdict:
    """What calls with some arguments show, the tensors among them being here and there."""
    verdict, on_cpu = Verdict(row.path), False
    named = row.parameters or arguments.parameters(entry)
    for place in PLACES:
        for device in PLACES if row.place.startswith(_ARGUMENT) or row.device_argument else ("cpu",):
            given = arguments.made(text, place, device, named)
            trial = entries.call(entry, given)
            if trial.failure is None:
                on_cpu = on_cpu or place == "cpu"
                _compare(verdict, row, given, trial.result, receiver)
                _reject(verdict, row, entry, given)
                continue
            verdict.unproven = verdict.unproven or said(trial.failure)
            if row.must_be_cpu and place == "cuda" and on_cpu:
                verdict.shown["must-be-cpu"] = None
    return verdict


def _compare(verdict: Verdict, row: Row, given: Given, result: Any, receiver: Any) -> None:
    """One call that went well."""
    if row.must_be_cpu and given.place == "cuda":
        verdict.differs["stated must-be-cpu, the run takes tensors on `cuda`"] = None
    seen = observation.kind(result)
    word = "is" if row.is_a else "result"
    if row.made.startswith(_ARGUMENT):
        stated = _argument(given, row.made)
        verdict.compare(word, observation.kind(stated) if stated is not None else "?", seen)
    elif row.made == "self":
        verdict.compare(word, type(receiver).__name__, type(result).__name__)
    elif row.made in OBJECTS:
        verdict.compare(word, row.made, seen)
    if row.stateless and isinstance(result, nn.Module):
        held = bool([*result.parameters(), *result.buffers()])
        verdict.compare("stateless", "true", "false" if held else "true")
    _place(verdict, row, given, result, receiver)
    for name in row.moves:
        moved = getattr(result, name)("cuda")
        verdict.compare("moves", "cuda", observation.place(result if moved is None else moved))


def _place(verdict: Verdict, row: Row, given: Given, result: Any, receiver: Any) -> None:
    """Where the result is."""
    seen = observation.place(result)
    asked = row.device_argument and given.named.get(row.device_argument)
    stated = _FIXED.get(row.place, row.place.partition(":")[0] if not row.place.startswith(_ARGUMENT) else "")
    if asked:
        stated = str(asked).partition(":")[0]
    elif row.place == "inputs" or (not row.place and row.made.startswith(_ARGUMENT)):
        stated = given.place
    elif row.place == "self":
        stated = observation.place(receiver)
    elif row.place.startswith(_ARGUMENT):
        value = _argument(given, row.place)
        stated = value.partition(":")[0] if isinstance(value, str) else observation.place(value)
    if seen and stated and stated != "unknown":
        verdict.compare("device-argument" if asked else "place", stated, seen)


def _argument(given: Given, stated: str) -> Any:
    return given.all().get(given.name(stated.removeprefix(_ARGUMENT)))


def _reject(verdict: Verdict, row: Row, entry: Callable[..., Any], given: Given) -> None:
    """Whether a tensor on the CPU is taken among others elsewhere."""
    if given.place != "cuda":
        return
    told = {True: "it is taken", False: "it raises"}
    for word, names, stated in (("rejects-cpu", row.rejects_cpu, False), ("accepts-cpu", row.accepts_cpu, True)):
        for name in names:
            if name != "*" and (taken := entries.takes(entry, given, name, "cpu")) is not None:
                verdict.compare(f"{word} {name}", told[stated], told[taken])
