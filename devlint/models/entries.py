"""Entries: what a dotted name means, and what calls of it did."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from devlint.flow.catalog.libraries import Catalog
from devlint.flow.catalog.schema import Row
from devlint.models import arguments, observation
from devlint.models.arguments import ERRORS, CannotCallError, Given, said

NO_OBJECT = "no object of"
"""How it is said that a method has nothing to be called on."""


@dataclass(frozen=True)
class Trial:
    """One call: what it was given, and what it returned or raised."""

    given: Given
    result: Any = None
    failure: BaseException | None = None


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
        made = call(owner, arguments.made(text, "cpu", "cpu", row.parameters or arguments.parameters(owner)))
        if made.failure is None:
            return getattr(made.result, name), made.result
    raise CannotCallError(f"{NO_OBJECT} {path} could be made: {said(made.failure)}")


def call(function: Callable[..., Any], given: Given) -> Trial:
    """Call it."""
    try:
        return Trial(given, function(*given.positional, **given.named))
    except ERRORS as error:
        return Trial(given, failure=error)


def mixed(given: Given, name: str, place: str = "cpu") -> Iterator[Given]:
    """The same arguments with one of them elsewhere, if it has a place."""
    try:
        value = given.at(name)
    except (LookupError, ValueError):
        return
    if not observation.place(value):
        return
    here = value.to(place) if hasattr(value, "to") else torch.ones(4, 4, device=place)
    if name in given.named:
        yield replace(given, named={**given.named, name: here})
    else:
        at = int(name) if name.isdigit() else given.parameters.index(name)
        yield replace(given, positional=(*given.positional[:at], here, *given.positional[at + 1 :]))
