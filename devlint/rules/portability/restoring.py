"""Whether what a call loads goes nowhere but into ``load_state_dict``, which copies the values."""

from __future__ import annotations

import ast
import re
from enum import Enum

from devlint.flow.catalog.methods import TO_DEVICE
from devlint.rules.base import SourceText
from devlint.rules.code.blocks import Way, statement_of, way_to
from devlint.rules.code.edits import around
from devlint.rules.code.origins import made_of
from devlint.source.syntax import walk

_NUMBER = re.compile(
    r"(?:\w+_)?(?:epochs?|steps?|iters?|iterations?|version|arch|args|config|cfg|hparams|hyper_parameters)"
)
"""Items of a checkpoint that hold no tensors."""
_ASKING = frozenset({"len", "print", "isinstance", "type"})
_DATA = re.compile(r"(?:Dataset|DataLoader)$")
_LOGGING = frozenset({"debug", "info", "warning", "error"})


class _End(Enum):
    """What becomes of a value where it is read."""

    COPIED = "copied, or only looked at"
    NAMED = "given another name"
    LOST = "anything else"


def only_restored(source: SourceText, call: ast.AST) -> bool:
    """Whether each use of what ``call`` returns, under all names, copies its values or only looks at them."""
    names: set[str] = set()
    rest: list[ast.AST] = [call]
    while rest:
        way = way_to(source, rest.pop())
        end, targets = _end(way)
        if end is _End.LOST:
            return False
        fresh = {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)} - names
        names |= fresh
        rest += (
            node
            for node in (ast.walk(around(source, call)) if fresh else ())
            if isinstance(node, ast.Name) and node.id in fresh and isinstance(node.ctx, ast.Load)
        )
    return True


def replaces_moved(source: SourceText, call: ast.AST) -> bool:
    """Whether something in what ``call`` returns takes the place of a tensor that the function has moved before."""
    names, function, row = names_of(source, call), around(source, call), int(getattr(call, "lineno", 0))
    moved: dict[str, list[int]] = {}
    taken: set[str] = set()
    for node in walk(function) if names else ():
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            value, target = node.value, node.targets[0].id
            if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in TO_DEVICE:
                moved.setdefault(target, []).append(node.lineno)
            elif isinstance(value, ast.Subscript) and isinstance(value.value, ast.Name) and value.value.id in names:
                taken.add(target)
    return any(name in taken and max(rows) < row for name, rows in moved.items())


def sampled(source: SourceText, call: ast.AST) -> bool:
    """Whether what ``call`` returns, or something in it, goes into a data set or its loader."""
    names, function = names_of(source, call), around(source, call)
    return any(
        isinstance(node, ast.Call)
        and _DATA.search(ast.unparse(node.func))
        and any(not names.isdisjoint(made_of(given, function)) for given in node.args)
        for node in (walk(function) if names else ())
    )


def names_of(source: SourceText, call: ast.AST) -> set[str]:
    """The names that are given what a call returns."""
    found = statement_of(source, call)
    targets = found[0].targets if found is not None and isinstance(found[0], ast.Assign) else []
    return {target.id for target in targets if isinstance(target, ast.Name)}


def _end(way: Way) -> tuple[_End, list[ast.expr]]:
    """What becomes of the expression at the end of a way, and the targets that it is given to."""
    mere = True
    for outer, inner in reversed(way):
        if isinstance(outer, ast.Assign):
            return _assigned(outer, inner)
        if isinstance(outer, ast.For) and inner is outer.iter:
            return _End.NAMED, [outer.target]
        if (isinstance(outer, ast.Call) and _copies(outer, inner)) or _looks_up(outer, inner):
            return _End.COPIED, []
        if isinstance(outer, ast.stmt):
            # a method of its own, as in ``state.pop(key)``
            return _End.COPIED if isinstance(outer, ast.Expr) and mere else _End.LOST, []
        own = isinstance(outer, ast.Attribute | ast.Subscript) or (isinstance(outer, ast.Call) and inner is outer.func)
        mere = mere and own
    return _End.LOST, []


def _assigned(statement: ast.Assign, part: ast.AST) -> tuple[_End, list[ast.expr]]:
    if part is not statement.value:
        return _End.COPIED, []
    # an item of a dict goes where the dict does
    targets = [target.value if isinstance(target, ast.Subscript) else target for target in statement.targets]
    return (_End.NAMED, targets) if all(isinstance(target, ast.Name) for target in targets) else (_End.LOST, [])


def _copies(call: ast.Call, part: ast.AST) -> bool:
    """Whether a call copies the values of what stands in a part of it, or only looks at that."""
    if isinstance(call.func, ast.Name):
        return call.func.id in _ASKING
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    return method in ("load_state_dict", *_LOGGING) if part is not call.func else method == "keys"


def _looks_up(outer: ast.AST, inner: ast.AST) -> bool:
    """Whether something is asked about a value, or an item taken that is a number by its name, or is replaced."""
    if isinstance(outer, ast.Subscript) and inner is outer.value:
        key = outer.slice.value if isinstance(outer.slice, ast.Constant) else None
        return not isinstance(outer.ctx, ast.Load) or (isinstance(key, str) and _NUMBER.fullmatch(key) is not None)
    return isinstance(outer, ast.Compare) or (isinstance(outer, ast.If | ast.Assert) and inner is outer.test)
