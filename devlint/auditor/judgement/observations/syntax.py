"""What the code at an observed place says: the call that was running, what it was called on, what it asked for."""

from __future__ import annotations

import ast

from devlint.auditor.judgement.locator import Location
from devlint.flow.catalog.methods import MOVERS
from devlint.flow.syntax.names import dotted
from devlint.rules.code.blocks import statement_of

COPIERS = MOVERS | {"copy_"}
"""The methods that copy a tensor to somewhere."""
_PLAIN = frozenset({"device", "non_blocking"})


def called(call: ast.Call) -> str:
    """The last part of the name that is called."""
    return dotted(call.func).rpartition(".")[2] or getattr(call.func, "attr", "")


def mover(location: Location) -> ast.Call | None:
    """The call of a method that moves something, where that is what was running."""
    node = location.node
    moving = location.exact and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    return node if moving and isinstance(node, ast.Call) and called(node) in COPIERS else None


def receiver(call: ast.Call | None) -> ast.expr | None:
    """What a method is called on."""
    return call.func.value if call is not None and isinstance(call.func, ast.Attribute) else None


def text(node: ast.AST | None) -> str:
    """An expression on one line, empty for none."""
    return "" if node is None else ast.unparse(node)


def target(call: ast.Call | None) -> ast.expr | None:
    """The argument of a move that says where to."""
    if call is None:
        return None
    given = [keyword.value for keyword in call.keywords if keyword.arg == "device"]
    return given[0] if given else call.args[0] if call.args else None


def is_plain(call: ast.Call | None) -> bool:
    """Whether a move asks for a device and nothing else."""
    if call is None or any(isinstance(argument, ast.Starred) for argument in call.args):
        return False
    return len(call.args) <= 1 and {keyword.arg for keyword in call.keywords} <= _PLAIN


def is_discarded(location: Location) -> bool:
    """Whether nobody takes the result of the expression."""
    return isinstance(statement_of(location.source, location.node), ast.Expr)


def is_open(call: ast.Call) -> bool:
    """Whether ``*`` or ``**`` may bring more arguments."""
    return any(keyword.arg is None for keyword in call.keywords) or any(
        isinstance(argument, ast.Starred) for argument in call.args
    )
