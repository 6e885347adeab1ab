"""Proof: a row beside what a call of the entry has shown on the simulated accelerator."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from devlint.flow.catalog.libraries import Catalog
from devlint.flow.catalog.schema import OBJECTS, Row
from devlint.models import arguments, entries, observation
from devlint.models.arguments import ERRORS, PLACES, CannotCallError, Given, said

_ARGUMENT = "argument:"
_OTHER = ("stated result", "stated is")
"""How it is said that a call returns something else."""
_TAKES_ALL = {
    True: "accepts-cpu",
    False: 'it moves its inputs itself: say `is = "module"`, `place` and `accepts-cpu = ["*"]`',
}
_WORDS = (
    "result", "is_a", "place", "device_argument", "moves", "managed_by", "must_be_cpu", "rejects_cpu", "accepts_cpu",
    "waits", "elementwise", "stateless", "needs", "runs", "steps",
)  # fmt: skip
"""The attributes of a row that say what a call does."""
_FIXED = {"cpu": "cpu", "default": "cpu", "accelerator": "cuda"}


@dataclass
class Verdict:
    """What came of an entry: what a run has shown, where it differs, and why there is nothing to see."""

    key: str
    shown: dict[str, None] = field(default_factory=dict)
    differs: dict[str, None] = field(default_factory=dict)
    unproven: str = ""
    missed: list[str] = field(default_factory=list)
    """The words that no run has shown, right or wrong."""
    advice: str = ""

    def lines(self) -> list[str]:
        """What is told of it."""
        missed = f"; not shown: {', '.join(self.missed)}" if self.missed else ""
        return [
            *(self.differs or [self.unproven or f"shown: {', '.join(self.shown)}{missed}"]),
            *filter(None, [self.advice]),
        ]

    def compare(self, word: str, stated: str, seen: str) -> None:
        """A word of the row states one thing, and the run has shown another, or the same."""
        if stated == seen:
            self.shown[word] = None
        else:
            self.differs[f"stated {word} `{stated}`, the run says `{seen}`"] = None


def prove(key: str, catalog: Catalog, root: str = "") -> Verdict:
    """Call an entry, and compare what it does with its row; below ``root`` lies the code that devlint reads."""
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
            verdict.advice = _advice(row, entry, root)
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
    fitting = [one for one in called if not any(line.startswith(_OTHER) for line in one.differs)]
    fewest = min((len(one.missed) for one in fitting), default=0)
    # nothing that is stated of a tensor is right because it holds for a number
    best = next((one for one in fitting if len(one.missed) == fewest), called[0] if called else None)
    if best is not None:
        verdict.shown, verdict.differs, verdict.missed = best.shown, best.differs, best.missed
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
    told = {line.removeprefix("stated ").split(" ")[0].rstrip(",") for line in (*verdict.shown, *verdict.differs)}
    words = [name.removesuffix("_a").replace("_", "-") for name in _WORDS if getattr(row, name)]
    verdict.missed = [word for word in words if word not in told]
    return verdict


def _advice(row: Row, entry: Callable[..., Any], root: str) -> str:
    """What to add where devlint, which does not read the code, cannot know the position of a parameter."""
    named = [stated for stated in (row.made, row.place) if stated.startswith(_ARGUMENT)]
    code = getattr(inspect.getmodule(entry), "__file__", None) or ""
    read = not root or (code.startswith(os.path.join(root, "")) and "site-packages" not in code)
    known = arguments.parameters(entry)
    if read or row.parameters or not known or all(stated.rpartition(":")[2].isdigit() for stated in named):
        return ""
    return f"arguments that are given by position are not found without `parameters = {json.dumps(known)}`"


def _compare(verdict: Verdict, row: Row, given: Given, result: Any, receiver: Any) -> None:
    """One call that went well."""
    if row.must_be_cpu and given.place == "cuda" and observation.place([*given.all().values()]):
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
    if seen == "module" and observation.takes_all(result):
        (verdict.shown if "*" in row.accepts_cpu else verdict.differs)[_TAKES_ALL["*" in row.accepts_cpu]] = None
    _place(verdict, row, given, result, receiver)
    for name in row.moves:
        moved = getattr(result, name)("cuda")
        verdict.compare("moves", "cuda", observation.place(result if moved is None else moved))


def _place(verdict: Verdict, row: Row, given: Given, result: Any, receiver: Any) -> None:
    """Where the result is."""
    exact = ":" in row.place and not row.place.startswith(_ARGUMENT)
    seen = observation.place(result, exact)
    asked = row.device_argument and given.named.get(row.device_argument)
    stated = _FIXED.get(row.place, "" if row.place.startswith(_ARGUMENT) else row.place)
    if asked:
        stated, seen = str(asked).partition(":")[0], observation.place(result)
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
