"""What only the constructors of a file ask for: it happens before anything was moved."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from functools import cached_property

_MENTION = re.compile(r"(?<!\bself)\.(\w+)|\bself\.(\w+)\(")
"""An attribute, or a method that ``self`` calls: ``self.name`` alone is an attribute of that name of another class."""
_CALL = re.compile(r"\.(\w+)\(")


class Constructors:
    """The methods that the constructors of a file call, by their text and that of the file."""

    def __init__(self, bodies: Iterable[str], text: str) -> None:
        self._bodies = "\n".join(bodies)
        self._text = text

    @cached_property
    def _called(self) -> frozenset[str]:
        return frozenset(_CALL.findall(self._bodies))

    def alone_call(self, method: str) -> bool:
        """Whether the file calls a method in its constructors, and speaks of it nowhere else."""
        return method in self._called and _mentions(self._text, method) <= _mentions(self._bodies, method)


def _mentions(text: str, name: str) -> int:
    """How often a text has an attribute of that name."""
    lines = (line for line in text.split("\n") if name in line)
    found = itertools.chain.from_iterable(map(_MENTION.findall, lines))
    return sum(name in either for either in found)
