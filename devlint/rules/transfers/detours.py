"""Copies to an accelerator that nobody needs: what comes straight back, and what was copied there a moment before."""

from __future__ import annotations

import ast
import itertools
from bisect import bisect_left, bisect_right

from devlint.device import Kind
from devlint.rules.code.blocks import around, assigned, names_in, receiver, stores, way_to
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
    if not isinstance(call, ast.Call) or not isinstance(value, ast.Name) or site.kind == "module" or site.discarded:
        return None
    if site.target is None or site.target.accelerates() is False or site.value.device.same(site.target) is True:
        return None
    changed = stores(function).get(value.id, [])
    text, ways = ast.unparse(call), {parent for parent, _ in way_to(source, call)}
    named = names_in(function).get(value.id, [])
    here = named[bisect_left(named, loop.lineno, key=_row) : bisect_right(named, call.lineno, key=_row)]
    for name in here[-_MOST:]:
        before = _argument(source, name)
        if before is None or not _place(before) < _place(call) or ast.unparse(before) != text:
            continue
        outer = [parent for parent, _ in way_to(source, before) if isinstance(parent, ast.stmt | ast.ExceptHandler)]
        around_it = outer[:-1] if outer and not hasattr(outer[-1], "body") else outer
        if (
            set(around_it) <= ways
            and loop in around_it
            and not any(before.lineno <= row <= call.lineno for row in changed)
        ):
            return before
    return None


def _row(node: ast.Name) -> int:
    return node.lineno


def _place(node: ast.Call) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _argument(source: Source, name: ast.Name) -> ast.Call | None:
    """The call of a method of what has a name, where its result is an argument: so what it moves is no module."""
    way = way_to(source, name)
    if len(way) < 3 or not isinstance(way[-2][0], ast.Call) or way[-2][0].func is not way[-1][0]:
        return None
    call, outer = way[-2][0], way[-3][0]
    return call if isinstance(outer, ast.Call) and outer.func is not call else None
