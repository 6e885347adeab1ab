"""Proof: a row beside what a call of the entry has shown on the simulated accelerator."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from torch import nn

from devlint.flow.catalog.libraries import Catalog
from devlint.flow.catalog.schema import OBJECTS, Row
from devlint.models import arguments, observation
from devlint.models.arguments import PLACES, Given

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


class CannotCallError(Exception):
    """There is no way to call it; the text says why."""


def prove(key: str, catalog: Catalog) -> Verdict:
    """Call an entry, and compare what it does with its row."""
    row, verdict = catalog.row(key), Verdict(key)
    if row is None or "*" in key or "[" in key:
        verdict.unproven = "a pattern, of which there is nothing to call"
        return verdict
    try:
        entry, receiver = _entry(key, catalog)
        if row.alias_of:
            same = entry is _found(row.alias_of)
            verdict.compare("alias-of", row.alias_of, row.alias_of if same else _name(entry))
        elif row.speaks_of_calls or row.moves:
            _try(verdict, row, entry, receiver)
        else:
            verdict.unproven = "nothing that a call could show"
    except CannotCallError as error:
        verdict.unproven = f"cannot be called: {error}"
    if not verdict.shown and not verdict.differs and not verdict.unproven:
        verdict.unproven = "nothing that a call could show"
    return verdict


# -- what is called ----------------------------------------------------------------------------------------------------


def _found(key: str) -> Any:
    """What a dotted name means."""
    parts = key.split(".")
    for end in range(len(parts), 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError as error:
            if error.name is None or not key.startswith(error.name):
                raise CannotCallError(_said(error)) from error
            continue
        except Exception as error:
            raise CannotCallError(_said(error)) from error
        for name in parts[end:]:
            if not hasattr(value, name):
                raise CannotCallError(f"{'.'.join(parts[:end])} has no {'.'.join(parts[end:])}")
            value = getattr(value, name)
        return value
    raise CannotCallError(f"there is no package {parts[0]!r}")


def _entry(key: str, catalog: Catalog) -> tuple[Callable[..., Any], Any]:
    """What is to be called, and the object whose method it is."""
    entry = _found(key)
    owner = _found(key.rpartition(".")[0]) if "." in key else None
    if not isinstance(owner, type) or not inspect.isfunction(entry):
        return entry, None
    path = key.rpartition(".")[0]
    row = catalog.row(path) or Row(path)
    for given in arguments.of(row, owner, "cpu", "cpu"):
        try:
            made = owner(*given.positional, **given.named)
        except Exception as error:
            failure = error
            continue
        return getattr(made, key.rpartition(".")[2]), made
    raise CannotCallError(f"no object of {path} could be made: {_said(failure)}")


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _name(value: Any) -> str:
    return f"{getattr(value, '__module__', '?')}.{getattr(value, '__qualname__', value)}"


# -- what it does ------------------------------------------------------------------------------------------------------


def _try(verdict: Verdict, row: Row, entry: Callable[..., Any], receiver: Any) -> None:
    """Call it with tensors here and there, and compare."""
    failure: Exception | None = None
    for place in PLACES:
        for device in PLACES if _asks(row) else ("cpu",):
            for given in arguments.of(row, entry, place, device):
                try:
                    result = entry(*given.positional, **given.named)
                except Exception as error:
                    failure = failure or error
                    if row.must_be_cpu and place == "cuda":
                        verdict.shown["must-be-cpu"] = None
                    continue
                _compare(verdict, row, given, result, receiver)
                _reject(verdict, row, entry, given, device)
    if failure is not None and not verdict.shown and not verdict.differs:
        raise CannotCallError(_said(failure))


def _asks(row: Row) -> bool:
    return row.place.startswith(_ARGUMENT) or bool(row.device_argument)


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
    try:
        return given.at(stated.removeprefix(_ARGUMENT))
    except (LookupError, ValueError):
        return None


def _reject(verdict: Verdict, row: Row, entry: Callable[..., Any], given: Given, device: str) -> None:
    """Whether a tensor on the CPU is taken among others elsewhere."""
    if given.place != "cuda":
        return
    for word, names, fails in (("rejects-cpu", row.rejects_cpu, True), ("accepts-cpu", row.accepts_cpu, False)):
        for name in names - {"*"}:
            for mixed in _mixed(row, entry, given, name, device):
                try:
                    entry(*mixed.positional, **mixed.named)
                    raised = False
                except Exception:
                    raised = True
                verdict.compare(f"{word} {name}", *(("it raises" if one else "it is taken") for one in (fails, raised)))


def _mixed(row: Row, entry: Callable[..., Any], given: Given, name: str, device: str) -> Iterator[Given]:
    """The same call with one argument on the CPU."""
    value = _argument(given, name)
    if value is None or not observation.place(value):
        return
    here = value.to("cpu") if hasattr(value, "to") else arguments.tensor("cpu")
    if name in given.named:
        yield replace(given, named={**given.named, name: here})
    else:
        at = given.parameters.index(name)
        yield replace(given, positional=(*given.positional[:at], here, *given.positional[at + 1 :]))
