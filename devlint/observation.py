"""What an audit saw of the calls of a function: where its arguments, its attributes and its results were."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SightKind = Literal["tensor", "tensors", "module", "device", "none", "other"]
"""What a value was: ``tensors`` is a list, tuple or dict with tensors directly in it, ``device`` what names one."""
RETURNED = "return"
"""The name under which an observation keeps what a function returned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """Where something was, in those calls of a function that were looked at."""

    name: str
    """An argument, ``self``, an attribute (``self.cache``) as the call found it, or ``return``."""
    kinds: tuple[SightKind, ...] = ()
    devices: tuple[str, ...] = ()
    """Of a tensor or of those in a container, of what a module registers, or the one that is named."""
    scalar: bool = False
    """Whether it was, or held, a tensor without dimensions."""
    calls: int = 0
    """In how many calls it was looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """On which devices a function of the project was given its arguments, kept its attributes, and left its results."""

    file: str
    function: str
    """Its name, without those around it."""
    line: int
    """Where it begins: its ``def``, or its first decorator."""
    calls: int = 0
    """How many of its calls were looked at: the first ones, and then one now and then."""
    sights: tuple[Sight, ...] = ()
