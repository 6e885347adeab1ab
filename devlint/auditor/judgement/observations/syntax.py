"""What the code at an observed place says: the call that was running, what it was called on, what it asked for."""

from __future__ import annotations

import ast
from typing import NamedTuple

from devlint.auditor.judgement.locator import Location, name_of
from devlint.flow.catalog.methods import MOVERS
from devlint.rules.code.blocks import statement_of

COPIERS = MOVERS | {"copy_"}
"""The methods that copy a tensor to somewhere."""
_PLAIN = frozenset({"device", "non_blocking"})


class Move(NamedTuple):
    """What the code says of a move: the method, what it is called on, and where to; empty of what is no such call."""

    name: str = ""
    value: ast.expr | None = None
    text: str = ""
    target: ast.expr | None = None
    plain: bool = False
    """Whether it asks for a device and nothing else."""


def called(location: Location) -> str:
    """The last part of the name of the call that was running, empty where that was none."""
    return name_of(location.node) if location.exact and isinstance(location.node, ast.Call) else ""


def move_at(location: Location) -> Move:
    """The move that was running."""
    name, call = called(location), location.node
    if name not in COPIERS or not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return Move()
    value = call.func.value
    given = [*(keyword.value for keyword in call.keywords if keyword.arg == "device"), *call.args]
    starred = any(isinstance(argument, ast.Starred) for argument in call.args)
    plain = len(call.args) <= 1 and not starred and {keyword.arg for keyword in call.keywords} <= _PLAIN
    return Move(name, value, ast.unparse(value), given[0] if given else None, plain)


def is_discarded(location: Location) -> bool:
    """Whether nobody takes the result of the expression."""
    return isinstance(statement_of(location.source, location.node), ast.Expr)


def is_open(call: ast.Call) -> bool:
    """Whether ``*`` or ``**`` may bring more arguments."""
    return any(keyword.arg is None for keyword in call.keywords) or any(
        isinstance(argument, ast.Starred) for argument in call.args
    )
