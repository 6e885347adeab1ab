"""The registry: rules are found in the modules below this package, never listed by hand."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from devlint import rules

if TYPE_CHECKING:
    from devlint.rules.base import Rule


@functools.cache
def registry() -> Mapping[str, type[Rule]]:
    """Every rule by its code, in the order of the codes; to load them is what costs, so it happens here."""
    found: dict[str, type[Rule]] = {}
    for rule in discover():
        if rule.code in found:
            raise RuntimeError(f"{rule.__qualname__} and {found[rule.code].__qualname__} share {rule.code}")
        found[rule.code] = rule
    return MappingProxyType(dict(sorted(found.items())))


def discover() -> Iterator[type[Rule]]:
    """The classes with a code in all modules below this package."""
    from devlint.rules.base import Rule

    for info in pkgutil.walk_packages(rules.__path__, f"{rules.__name__}."):
        for value in vars(importlib.import_module(info.name)).values():
            own = isinstance(value, type) and issubclass(value, Rule) and value.__module__ == info.name
            if own and hasattr(value, "code"):
                yield value
