"""Copies to an accelerator that nobody needs: what comes straight back, and what was copied there a moment before."""

from __future__ import annotations

import ast
import itertools
from bisect import bisect_left, bisect_right

from devlint.device import Kind
from devlint.rules.code.blocks import Way, around, assigned, names_in, receiver, stores, way_to
from devlint.sites.base import Act, Step
from devlint.sites.transfers import Transfer
from devlint.source.tree import Source

_MOST = 40
"""So many places back a copy is looked for: further up it is another thought."""


def gone_and_back(source: Source, site: Transfer) -> Step | None:
    """Where the tensor was moved that ``site`` copies to the host, if nothing else reads it where it was moved to."""
    node, story = site.value.node, site.value.story
    while isinstance(node, ast.Call) and (inner := receiver(node)) is not None and not node.args:
        node = inner
    to_host = site.target is not None and site.target.kind is Kind.CPU and not site.discarded
    if not to_host or not isinstance(node, ast.Name) or not story or story[-1].act is not Act.MOVED:
        return None
    moved, function = story[-1].node, around(source, site.node)
    # what was computed of what was moved is not what was moved
    held = any(value is moved for _, value in assigned(function).get(node.id, ()))
    if not isinstance(moved, ast.Call) or not held:
        return None
    named = names_in(function).get(node.id, [])
    behind = bisect_right(named, moved.end_lineno or moved.lineno, key=_row)
    reads = (one for one in itertools.islice(named, behind, None) if isinstance(one.ctx, ast.Load))
    return story[-1] if list(itertools.islice(reads, 2)) == [node] else None


def copied_before(source: Source, site: Transfer) -> ast.Call | None:
    """The call that has copied the same tensor to the same device in the same step of a loop."""
    call, function = site.node, around(source, site.node)
    value, loop = site.value.node, site.scope.loop
    if not site.scope.step or not isinstance(loop, ast.stmt):
        return None
    root = _root(value)
    if not isinstance(call, ast.Call) or root is None or site.kind == "module" or site.discarded:
        return None
    if site.target is None or site.target.accelerates() is False or site.value.device.same(site.target) is True:
        return None
    changed = stores(function).get(root.id, [])
    text, ways = ast.unparse(call), dict(way_to(source, call))
    named = names_in(function).get(root.id, [])
    here = named[bisect_left(named, loop.lineno, key=_row) : bisect_right(named, call.lineno, key=_row)]
    for name in here[-_MOST:]:
        before = _argument(source, name)
        if before is None or not _place(before) < _place(call) or ast.unparse(before) != text:
            continue
        outer = [pair for pair in way_to(source, before) if isinstance(pair[0], ast.stmt | ast.ExceptHandler)]
        around_it = dict(outer[:-1] if outer and not hasattr(outer[-1][0], "body") else outer)
        if (
            all(parent in ways and _in_one_block(parent, inner, ways[parent]) for parent, inner in around_it.items())
            and loop in around_it
            and not any(before.lineno <= row <= call.lineno for row in changed)
            and (root is value or all(_only_read(source, one) for one in here if one.lineno >= before.lineno))
        ):
            return before
    return None


def _in_one_block(statement: ast.AST, one: ast.AST, other: ast.AST) -> bool:
    """Whether two parts of a statement are in the same of its blocks: not where one is left out if the other runs."""
    blocks = [getattr(statement, name, ()) for name in ("body", "orelse", "handlers", "finalbody")]
    return any(one in block and other in block for block in blocks)


def _root(node: ast.AST | None) -> ast.Name | None:
    """The name of what a tensor is a part of, by attributes and fixed keys, or its own."""
    while isinstance(node, ast.Attribute) or (isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)):
        node = node.value
    return node if isinstance(node, ast.Name) else None


def _only_read(source: Source, name: ast.Name) -> bool:
    """Whether a part is taken of what has a name, and neither it nor the whole is changed, as far as can be seen."""
    way = way_to(source, name)
    at = _end_of_part(way, name)
    if at == len(way) or not isinstance(getattr(way[at][0], "ctx", None), ast.Load):
        return False
    part, outer = way[at][0], way[at - 1][0] if at else None
    if not isinstance(part, ast.Attribute) or not isinstance(outer, ast.Call) or outer.func is not part:
        return True
    return part.value is not name and not part.attr.endswith("_")


def _end_of_part(way: Way, name: ast.Name) -> int:
    """Where in the way to a name the longest expression of attributes and fixed keys stands that begins with it."""
    at = len(way)
    while at and _root(way[at - 1][0]) is name:
        at -= 1
    return at


def _row(node: ast.Name) -> int:
    return node.lineno


def _place(node: ast.Call) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _argument(source: Source, name: ast.Name) -> ast.Call | None:
    """The call of a method of what has a name, or of a part of it, where its result is an argument: no module moves."""
    way = way_to(source, name)
    at = _end_of_part(way, name)
    if at < 2:
        return None
    (outer, call), (_, method) = way[at - 2 : at]
    if not isinstance(call, ast.Call) or call.func is not method:
        return None
    return call if isinstance(outer, ast.Call) and outer.func is not call else None
