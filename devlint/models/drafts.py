"""Drafts of rows: what calls on the simulated accelerator show, in the words that rows have for it."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from torch import nn

from devlint.flow.catalog.libraries import Catalog, Layer
from devlint.flow.catalog.schema import OBJECTS, Row, RowError, Words
from devlint.models import arguments, entries, observation
from devlint.models.arguments import ERRORS, PLACES, CannotCallError, said
from devlint.models.entries import NO_OBJECT, Trial
from devlint.models.proof import prove

_ABOUT_DEVICES = re.compile(r"cuda|cpu|device|numpy", re.IGNORECASE)
_PLACED = frozenset({"tensor", "tensor-mapping", "device"})
"""What is somewhere of its own; the rest is where what it was made of is."""


@dataclass
class Draft:
    """A row, or the reason why there is none."""

    key: str
    words: Words
    reason: str = ""

    def __str__(self) -> str:
        """The text of the row, or a comment."""
        if self.reason:
            return f"# {self.key}: {self.reason}"
        lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in self.words.items()]
        return "\n".join([f'["{self.key}"]', *lines])


def drafts(name: str) -> list[Draft]:
    """A draft for each function and class of a module, and for the methods of the classes."""
    found: list[Draft] = []
    named: dict[int, str] = {}
    for key, value in _public(name):
        if id(value) in named:
            found.append(Draft(key, {"alias-of": named[id(value)]}))
            continue
        named[id(value)] = key
        found.append(_draft(key, found))
        if isinstance(value, type) and "result" not in found[-1].words:
            moved = str(found[-1].words.get("moves"))
            methods = [_draft(f"{key}.{method}", found) for method in _methods(value) if repr(method) not in moved]
            # without an object, the class has said why
            found += [draft for draft in methods if NO_OBJECT not in draft.reason]
    return found


def lasting(found: list[Draft]) -> list[Draft]:
    """The drafts, without the rows of what does something else in another process, after other calls."""
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "rows.toml")
        with open(file, "w", encoding="utf-8") as stream:
            stream.write(written(found))
        checked = subprocess.run(
            [sys.executable, "-m", "devlint", "models", "check", file],
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
    shown = {line.partition(": shown: ")[0] for line in checked.stdout.splitlines()}
    return [
        draft if draft.reason or draft.key in shown else Draft(draft.key, {}, "it does not do the same each time")
        for draft in found
    ]


def written(found: list[Draft]) -> str:
    """The file of rows that the drafts are."""
    return "\n\n".join(map(str, found))


def _public(name: str) -> Iterator[tuple[str, Any]]:
    """The functions and classes of a module, or the one that is named."""
    module = entries.found(name)
    if not isinstance(module, ModuleType):
        yield name, module
        return
    listed = getattr(module, "__all__", None)
    for inner in listed or sorted(vars(module)):
        value = getattr(module, inner, None)
        own = listed or f"{getattr(value, '__module__', '')}.".startswith(f"{name}.")
        error = isinstance(value, type) and issubclass(value, BaseException)
        if own and not error and not inner.startswith("_") and (inspect.isroutine(value) or isinstance(value, type)):
            yield f"{name}.{inner}", value


def _methods(cls: type) -> list[str]:
    """The public methods that a class and its bases in the same package define; a call of a module is known."""
    package = cls.__module__.partition(".")[0]
    bases = [base for base in cls.__mro__ if base.__module__.partition(".")[0] == package]
    names = {name: None for base in bases for name, value in vars(base).items() if inspect.isfunction(value)}
    known = {"forward", "to", "cuda", "cpu"} if issubclass(cls, nn.Module) else {"to", "cuda", "cpu"}
    return [name for name in names if not name.startswith("_") and name not in known]


def _draft(key: str, before: Iterable[Draft]) -> Draft:
    """The draft for one entry that `devlint models check` will find shown."""
    if key.rpartition(".")[2] == "main":
        return Draft(key, {}, "not called: it would run the program")
    known = {draft.key: draft.words for draft in before if not draft.reason}
    reason = ""
    try:
        for tried in _texts(key, _catalog(known)):
            row, said_instead = _row(key, tried, known)
            if row:
                return Draft(key, row)
            reason = reason or said_instead
    except CannotCallError as error:
        reason = f"cannot be called: {error}"
    return Draft(key, {}, reason)


def _row(key: str, text: str, known: dict[str, Words]) -> tuple[Words, str]:
    """A row that such arguments show, or why there is none."""
    try:
        words = _Observed(key, text, _catalog(known)).words()
    except CannotCallError as error:
        return {}, str(error)
    except ERRORS as error:
        return {}, f"what it returns cannot be looked at: {said(error)}"
    reason = "" if words else "rows have nothing to say of what it returns"
    # without `example` first: it says what anybody would have tried
    for row in (words, {**words, "example": text}) if words else ():
        try:
            verdict = prove(key, _catalog({**known, key: row}))
        except RowError as error:
            return {}, str(error)
        if verdict.shown and not verdict.differs:
            return row, ""
        reason = reason or "; ".join(verdict.differs) or verdict.unproven
    return {}, reason


def _texts(key: str, catalog: Catalog) -> list[str]:
    """The arguments with which a call goes well; a :class:`CannotCallError` says why it never does."""
    entry, _ = entries.entry(key, catalog)
    texts, named = arguments.texts(Row(key), entry), arguments.parameters(entry)
    trials = [entries.call(entry, arguments.made(text, place, place, named)) for text in texts for place in PLACES]
    if all(trial.failure is not None for trial in trials):
        raise CannotCallError(said(trials[0].failure))
    return list(dict.fromkeys(trial.given.text for trial in trials if trial.failure is None))


def _catalog(rows: dict[str, Words]) -> Catalog:
    layer = Layer()
    layer.add(dict(rows))
    return Catalog([layer])


class _Observed:
    """What calls with some arguments did, the tensors among them here and there."""

    def __init__(self, key: str, text: str, catalog: Catalog) -> None:
        self._key, self._catalog = key, catalog
        entry, receiver = entries.entry(key, catalog)
        self._parameters = arguments.parameters(entry)
        self._asked, self._required = arguments.device_parameter(entry)
        self._is_class, self._is_method = isinstance(entry, type), receiver is not None
        self._runs = list(self._tried(text))
        self._went = [run for run in self._runs if run.failure is None]
        if not self._went:
            raise CannotCallError("it can be called once, and not again")
        on_cuda = [run.failure for run in self._runs if run.given.place == "cuda"]
        self._refused = [failure for failure in on_cuda if failure is not None]
        if len(self._refused) < len(on_cuda):
            self._refused = []
        self._chosen = []
        if self._asked and not self._required:
            given = ", ".join(filter(None, (text, f"{self._asked}=device")))
            self._chosen = [run for run in self._tried(given) if run.failure is None]

    def _tried(self, text: str) -> Iterator[Trial]:
        for receiver_place in PLACES if self._is_method else PLACES[:1]:
            for place in PLACES:
                for device in PLACES if re.search(r"\bdevice\b", text) else PLACES[:1]:
                    entry, receiver = entries.entry(self._key, self._catalog)
                    if receiver_place == "cuda":
                        receiver = _moved(receiver, "to", "cuda")
                        if receiver is None:
                            continue
                        entry = getattr(receiver, self._key.rpartition(".")[2])
                    given = arguments.made(text, place, device, self._parameters)
                    yield entries.call(entry, given, receiver, receiver_place)

    def words(self) -> Words:
        """The words of a row; none if rows have nothing to say of it."""
        words = self._made()
        must = self._must_be_cpu() if self._refused else []
        if self._refused and not must:
            raise CannotCallError(f"cannot be called with tensors on `cuda`: {said(self._refused[0])}")
        if must:
            words["must-be-cpu"] = must
        elif words:
            words.update(self._beside())
        stated = [str(words.get(name, "")) for name in ("result", "place")]
        named = [value.partition(":")[2] for value in stated if value.startswith("argument:")]
        named += [
            str(name)
            for word, names in words.items()
            if "-cpu" in word and isinstance(names, list)
            for name in names
            if name != "*"
        ]
        if named and set(named) <= set(self._parameters):
            words["parameters"] = list(self._parameters)
        return words

    # -- what is returned ----------------------------------------------------------------------------------------------

    def _made(self) -> Words:
        result = self._went[0].result
        kinds = {observation.kind(run.result) for run in self._went}
        if len(kinds) > 1:
            return {}
        takes_all = kinds == {"module"} and observation.takes_all(result)
        if self._is_method and all(run.result is run.receiver for run in self._went):
            return {"result": "self"}
        returned = next((name for name in self._went[0].given.all() if self._returns(name)), "")
        moves = self._moves() if self._is_class else []
        place = self._place()
        if returned and not moves and not takes_all:
            if place in ("", "inputs", "unknown", f"argument:{returned}"):
                return {"result": f"argument:{returned}"}
            return {"result": f"argument:{returned}", "place": place, **self._device_argument()}
        (kind,) = kinds
        if kind not in OBJECTS:
            return {}
        words: Words = {"is" if self._is_class else "result": kind}
        if place in ("accelerator", f"argument:{self._asked}", f"argument:{returned}") or (place and kind in _PLACED):
            words["place"] = place
        if kind in ("module", *_PLACED):
            words.update(self._device_argument())
        if isinstance(result, nn.Module) and self._is_class and not [*result.parameters(), *result.buffers()]:
            words["stateless"] = True
        words.update({"accepts-cpu": ["*"]} if takes_all else {})
        return {**words, "moves": moves} if moves else words

    def _device_argument(self) -> Words:
        follows = self._follows(self._chosen, lambda run: run.given.device)
        return {"device-argument": self._asked} if follows else {}

    def _returns(self, name: str) -> bool:
        """Whether a call returns what was given for a parameter, itself or moved."""
        pairs = [(run.given.all()[name], run.result) for run in self._went]
        return all(_equal(*pair) for pair in pairs) and any(_same(*pair) for pair in pairs)

    def _place(self) -> str:
        """Where the result is, in the word of rows; empty if it is nowhere."""
        seen = {observation.place(run.result) for run in self._went}
        if seen == {""} or "cpu and cuda" in seen:
            return "" if seen == {""} else "unknown"
        given = self._went[0].given.all()
        modules = [name for name, value in given.items() if isinstance(value, nn.Module)]
        tensors = [name for name in given if name not in modules and observation.place(given[name])]
        choices: dict[str, Callable[[Trial], str]] = {}
        if self._asked and self._required:
            choices[f"argument:{self._asked}"] = lambda run: run.given.device
        if tensors:
            choices["inputs"] = lambda run: run.given.place
        choices.update((f"argument:{name}", lambda run: run.given.place) for name in modules[:1])
        if self._is_method:
            choices["self"] = lambda run: run.receiver_place
        for word, place in choices.items():
            if self._follows(self._went, place):
                return word
        if len(seen) > 1:
            return "unknown"
        return "accelerator" if seen == {"cuda"} else "default" if self._follows_default() else "cpu"

    def _follows(self, runs: list[Trial], place: Callable[[Trial], str]) -> bool:
        """Whether the results are where something else is, which was not always in one place."""
        return len(set(map(place, runs))) > 1 and all(observation.place(run.result) == place(run) for run in runs)

    def _follows_default(self) -> bool:
        run = self._went[0]
        with torch.device("cuda"):
            trial = entries.call(run.entry, run.given)
        return trial.failure is None and observation.place(trial.result) == "cuda"

    def _moves(self) -> list[str]:
        """The methods that move an object as `.to(device)` does, besides those that have its name."""
        found, run = [], self._went[0]
        for name in _methods(type(run.result)):
            made = entries.call(run.entry, run.given).result
            asks = arguments.device_parameter(getattr(made, name))[0]
            if asks and all(observation.place(_moved(made, name, device)) == device for device in PLACES):
                found.append(name)
        return found

    # -- what is taken -------------------------------------------------------------------------------------------------

    def _tensors(self) -> list[str]:
        return [name for name, value in self._runs[0].given.all().items() if isinstance(value, torch.Tensor)]

    def _must_be_cpu(self) -> list[str]:
        """The arguments that are taken on the CPU alone."""
        run = self._went[0]
        if observation.place(run.receiver) or not all(_ABOUT_DEVICES.search(str(one)) for one in self._refused):
            return []
        return [name for name in self._tensors() if entries.takes(run.entry, run.given, name, "cuda") is False]

    def _beside(self) -> Words:
        """The arguments that may be on the CPU, among others elsewhere, and those that may not."""
        run = next((run for run in self._went if run.given.place == "cuda" and run.receiver_place == "cpu"), None)
        tensors = self._tensors()
        if run is None or len(tensors) < 2:
            return {}
        words: dict[str, list[str]] = {}
        for name in tensors:
            taken = entries.takes(run.entry, run.given, name, "cpu")
            words.setdefault("accepts-cpu" if taken else "rejects-cpu", []).append(name)
        return dict(words)


def _moved(value: Any, name: str, device: str) -> Any:
    """What a method has moved, ``None`` if it cannot; it may move in place."""
    try:
        moved = getattr(value, name)(device)
    except ERRORS:
        return None
    return value if moved is None else moved


def _same(given: Any, result: Any) -> bool:
    """Whether a result is, or holds, what was given."""
    if isinstance(given, dict):
        return type(result) is type(given) and all(_same(given[name], result.get(name)) for name in given)
    if isinstance(given, nn.Module):
        return observation.wraps(result, given)
    return given is result or observation.kind(given) == observation.kind(result) == "loader"


def _equal(given: Any, result: Any) -> bool:
    """Whether a result is what was given, wherever that is now."""
    if isinstance(given, torch.Tensor):
        return isinstance(result, torch.Tensor) and torch.equal(given.cpu(), result.cpu())
    if isinstance(given, dict):
        return type(result) is type(given) and all(_equal(given[name], result.get(name)) for name in given)
    if observation.kind(given) == observation.kind(result) == "loader":
        return all(map(_equal, next(iter(given)), next(iter(result))))
    return _same(given, result)
