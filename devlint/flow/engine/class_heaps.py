"""Class heaps: what ``__init__`` leaves in ``self``, as any method finds it later."""

from __future__ import annotations

import ast

from devlint.flow.domain.values import Loader, Tensor, Value
from devlint.flow.program.symbols import ClassInfo


def survives(info: ClassInfo, attribute: str, held: Value, change: str) -> bool:
    """Whether an attribute is what ``__init__`` made it although a method assigns it, or an item of it."""
    if change == "filled":
        # a tensor takes the values of what is written into it, and stays where it is
        return isinstance(held, Tensor) and held.certain
    if isinstance(held, Loader):
        return _constructed(info, attribute)
    # nothing but another parameter can take the place of one
    return info.is_module and isinstance(held, Tensor) and held.buffer and held.grad == "parameter"


def _constructed(info: ClassInfo, attribute: str) -> bool:
    """Whether nothing but the constructor, and methods that only it calls, assigns an attribute of ``self``."""
    return all(
        method.initialises
        for method in info.methods.values()
        for node in method.attributes
        if node.attr == attribute and not isinstance(node.ctx, ast.Load)
    )
