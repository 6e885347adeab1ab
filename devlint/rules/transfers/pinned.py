"""What pinned memory is good for, and how a copy from it is let go."""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from devlint.device import Device, Kind, Role
from devlint.finding import Edit
from devlint.rules.base import Rule
from devlint.rules.code.blocks import around, method_of, receiver
from devlint.rules.code.edits import with_arguments
from devlint.sites.transfers import Transfer
from devlint.source.syntax import walk

_READERS = ("cuda", "xpu", "hip", "mtia", "npu", "hpu", "privateuseone", "mlu")
_METHODS = frozenset({"to", "cuda", "copy_"})


def pins_inline(site: Transfer) -> bool:
    """Whether what is copied is pinned in the same expression, for this copy alone."""
    return method_of(site.value.node) == "pin_memory"


def chosen_away(device: Device) -> bool:
    """Whether something is on an accelerator, or where the code's own device expression says."""
    if device.accelerates() or device.switched:
        return True
    return device.kind is Kind.SYMBOL and device.role is Role.DEVICE


def reads_pinned(target: Device | None) -> bool:
    """Whether a copy to ``target`` may go to an accelerator that reads pinned memory."""
    if target is None or not target.known:
        return False
    return any(leaf.kind is Kind.SYMBOL or leaf.type in _READERS for leaf in target.leaves())


def can_be_released(site: Transfer) -> bool:
    """Whether the copy is one of the code's own, which says nothing yet of waiting."""
    if not isinstance(site.node, ast.Call):
        return site.spelled in _METHODS
    asked = any(keyword.arg in ("non_blocking", None) for keyword in site.node.keywords)
    return site.spelled in _METHODS and not asked and not any(isinstance(a, ast.Starred) for a in site.node.args)


def release(rule: Rule, site: Transfer) -> Edit | None:
    """The edit with which the host no longer waits for a copy."""
    if not isinstance(site.node, ast.Call) or site.via:
        return None
    return with_arguments(rule.source, site.node, non_blocking="True")


def released_safely(rule: Rule, site: Transfer) -> bool:
    """Whether it makes no difference to any result that the host does not wait.

    On CUDA what follows on the device comes after the copy, on others it need not; and the host must not write to the
    tensor before that has been read.
    """
    leaves = () if site.target is None else site.target.leaves()
    ordered = all(leaf.kind is Kind.CPU or leaf.type == "cuda" for leaf in leaves)
    return site.target is not None and ordered and released_in_time(rule, site)


def released_in_time(rule: Rule, site: Transfer) -> bool:
    """Whether the function never writes into the host's tensor, which may not have been read by then."""
    return root(site.value.node) not in _written(around(rule.source, site.node))


@lru_cache(maxsize=8)
def parts_of(loop: ast.For) -> frozenset[str]:
    """The names of what a loop takes one by one, and of what its body unpacks that into."""
    found = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
    for statement in loop.body:
        if isinstance(statement, ast.Assign) and root(statement.value) in found:
            found.update(node.id for node in ast.walk(statement.targets[0]) if isinstance(node, ast.Name))
    return frozenset(found)


def is_whole(move: Transfer) -> bool:
    """Whether what is moved is all that the loader yields, by the name that the loop gives it."""
    loop = move.scope.loop
    target = loop.target if isinstance(loop, ast.For) else None
    if isinstance(loop, ast.For) and isinstance(target, ast.Tuple) and len(target.elts) == 2:
        counted = isinstance(loop.iter, ast.Call) and ast.unparse(loop.iter.func) == "enumerate"
        target = target.elts[1] if counted else None
    return isinstance(target, ast.Name) and isinstance(move.value.node, ast.Name) and move.value.node.id == target.id


def root(node: ast.AST | None) -> str:
    """The name that an expression hangs on."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


@lru_cache(maxsize=8)
def _written(scope: ast.AST) -> frozenset[str]:
    """The names that something is written into, or into what hangs on them."""
    written: list[ast.AST | None] = []
    for node in walk(scope):
        if re.search("[^_]_$", method_of(node)):
            written.append(receiver(node))
        elif isinstance(node, ast.AugAssign):
            written.append(node.target)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            written.append(node)
    return frozenset(map(root, written))
