"""What only the constructors of a file ask for: it happens before anything was moved."""

from __future__ import annotations

import re
from collections import Counter
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

    @cached_property
    def _elsewhere(self) -> Counter[str]:
        return _mentions(self._text) - _mentions(self._bodies)

    def alone_call(self, method: str) -> bool:
        """Whether the file calls a method in its constructors, and speaks of it nowhere else."""
        return method in self._called and not self._elsewhere[method]


def _mentions(text: str) -> Counter[str]:
    return Counter(by_others or by_itself for by_others, by_itself in _MENTION.findall(text))
