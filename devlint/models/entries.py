"""Entries: what a dotted name means, and what calls of it did."""

from __future__ import annotations

import importlib
import inspect
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch

from devlint.flow.catalog.libraries import Catalog
from devlint.flow.catalog.schema import Row
from devlint.models import arguments, observation
from devlint.models.arguments import ERRORS, CannotCallError, Given, said

NO_OBJECT = "no object of"
"""How it is said that a method has nothing to be called on."""
PATIENCE = 20.0
"""Seconds after which a call is taken to hang."""
_hanging: list[Callable[..., Any]] = []
"""What has hung: it is not called again."""


@dataclass(frozen=True)
class Trial:
    """One call: of what, what it was given, what it returned or raised; of a method, the object and where that was."""

    entry: Callable[..., Any]
    given: Given
    receiver: Any = None
    receiver_place: str = "cpu"
    result: Any = None
    failure: BaseException | None = None


class _HangError(BaseException):
    """A call takes too long; whatever it catches, this is not among it."""


def found(key: str) -> Any:
    """What a dotted name means."""
    parts = key.split(".")
    for end in range(len(parts), 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError as error:
            if error.name is None or not f"{key}.".startswith(f"{error.name}."):
                raise CannotCallError(said(error)) from error
            continue
        except ERRORS as error:
            raise CannotCallError(said(error)) from error
        for name in parts[end:]:
            if not hasattr(value, name):
                raise CannotCallError(f"{'.'.join(parts[:end])} has no {'.'.join(parts[end:])}")
            value = getattr(value, name)
        return value
    raise CannotCallError(f"there is no package {parts[0]!r}")


def entry(key: str, catalog: Catalog) -> tuple[Callable[..., Any], Any]:
    """What is to be called, and the object whose method it is."""
    meant: Callable[..., Any] = found(key)
    path, _, name = key.rpartition(".")
    owner = found(path) if path else None
    if not isinstance(owner, type) or not inspect.isfunction(meant):
        return meant, None
    row = catalog.row(path) or Row(path)
    for text in arguments.texts(row, owner):
        given = arguments.made(text, "cpu", "cpu", row.parameters or arguments.parameters(owner))
        try:
            made = call(owner, given)
        except CannotCallError as error:
            raise CannotCallError(f"{NO_OBJECT} {path} could be made: {error}") from error
        if made.failure is None:
            return getattr(made.result, name), made.result
    raise CannotCallError(f"{NO_OBJECT} {path} could be made: {said(made.failure)}")


def call(function: Callable[..., Any], given: Given, receiver: Any = None, receiver_place: str = "cpu") -> Trial:
    """Call it; a :class:`CannotCallError` says that it hangs."""
    trial = Trial(function, given, receiver, receiver_place)
    try:
        if not any(function is one for one in _hanging):
            with _limited():
                return replace(trial, result=function(*given.positional, **given.named))
    except ERRORS as error:
        return replace(trial, failure=error)
    except _HangError:
        _hanging.append(function)
    raise CannotCallError(f"it has not returned after {PATIENCE:g} seconds")


@contextmanager
def _limited() -> Iterator[None]:
    """Interrupt what takes too long, where there is a signal for that; what waits outside of Python is not."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def interrupt(*_: object) -> None:
        raise _HangError

    before = signal.signal(signal.SIGALRM, interrupt)
    # again and again, in case that it catches everything
    signal.setitimer(signal.ITIMER_REAL, PATIENCE, 1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def takes(function: Callable[..., Any], given: Given, stated: str, place: str) -> bool | None:
    """Whether it takes the same arguments with one of them elsewhere, ``None`` if that one has no place."""
    name = given.name(stated)
    value: Any = given.all().get(name)
    if not observation.place(value):
        return None
    here = value.to(place) if hasattr(value, "to") else torch.ones(4, 4, device=place)
    if name in given.named:
        given = replace(given, named={**given.named, name: here})
    else:
        at = int(name) if name.isdigit() else given.parameters.index(name)
        given = replace(given, positional=(*given.positional[:at], here, *given.positional[at + 1 :]))
    return call(function, given).failure is None
