"""The fix of DVL202: make the copy once, where the tensor is made."""

from __future__ import annotations

import ast

from devlint.finding import Applicability, Edit, Fix, Span
from devlint.rules.base import SourceText
from devlint.rules.code.blocks import function_at
from devlint.rules.transfers.creating import leave_out, told
from devlint.sites.base import Creation
from devlint.sites.transfers import Transfer


def hoisting(source: SourceText, site: Transfer) -> Fix | None:
    """The tensor made on the device, and its moves left out; ``None`` where anything else reads it on the CPU."""
    node, made = site.node, site.value.factory_node
    named = (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name)
    )
    if not named or not isinstance(node, ast.Call) or not isinstance(made, ast.Call) or site.measured is not None:
        return None
    body = function_at(source, node)
    if body is None or function_at(source, made) is not body:
        return None
    moves = _all_moves(body, node)
    if not moves:
        return None
    last = max(moves, key=lambda move: source.span(move))
    creation = told(source, site, Creation(made, site.value.factory), last)
    if creation is None:
        return None
    edits = [leave_out(source, move) for move in moves]
    if any(edit is None for edit in edits):
        return None
    edit, device, _ = creation
    return Fix(
        f"Create it with `device={device}`", (edit, *(edit for edit in edits if edit is not None)), Applicability.UNSAFE
    )


def _all_moves(body: ast.AST, node: ast.Call) -> list[ast.Call] | None:
    """The moves like ``node`` in a function; ``None`` where the tensor is read, or bound, in any other way."""
    receiver = node.func.value if isinstance(node.func, ast.Attribute) else node
    name = receiver.id if isinstance(receiver, ast.Name) else ""
    wanted = ast.unparse(node)
    moves = [move for move in ast.walk(body) if isinstance(move, ast.Call) and ast.unparse(move) == wanted]
    moved = {id(move.func.value) for move in moves if isinstance(move.func, ast.Attribute)}
    mentions = [inner for inner in ast.walk(body) if isinstance(inner, ast.Name) and inner.id == name]
    stored = [inner for inner in mentions if not isinstance(inner.ctx, ast.Load)]
    read = [inner for inner in mentions if isinstance(inner.ctx, ast.Load) and id(inner) not in moved]
    return moves if len(stored) == 1 and not read else None


def created_before(source: SourceText, site: Transfer) -> Fix | None:
    """The creation of what is moved at once, told the device and put in front of the loop."""
    made = site.creation
    creation = None if made is None else told(source, site, made)
    function = site.node.func if isinstance(site.node, ast.Call) else None
    if made is None or creation is None or not isinstance(function, ast.Attribute) or function.value is not made.node:
        return None
    return out_of_the_loop(source, site.scope.loop, site.node, creation[0].content)


def out_of_the_loop(source: SourceText, loop: ast.AST | None, call: ast.AST, instead: str = "") -> Fix | None:
    """The statement that gives a name to ``call``, which stands in a loop by itself, put in front of the loop."""
    if not isinstance(loop, (ast.For, ast.While)) or len(loop.body) < 2:
        return None
    statement = next((inner for inner in loop.body if isinstance(inner, ast.Assign) and inner.value is call), None)
    if statement is None:
        return None
    whole, start, value = source.span(statement), source.span(loop), source.span(call)
    line, indent = source.lines[whole.row - 1], source.lines[start.row - 1][: start.column - 1]
    before, after = line[: whole.column - 1].strip(), line[whole.end_column - 1 :].strip()
    alone = not before and (not after or after.startswith("#")) and not indent.strip()
    if whole.row != whole.end_row or not alone:
        return None
    text = line[whole.column - 1 : value.column - 1] + (instead or source.segment(call)) + line[value.end_column - 1 :]
    moved = Edit(Span(start.row, 1, start.row, 1), f"{indent}{text.rstrip()}\n")
    gone = Edit(Span(whole.row, 1, whole.row + 1, 1), "")
    return Fix("Move it in front of the loop", (moved, gone), Applicability.UNSAFE)
