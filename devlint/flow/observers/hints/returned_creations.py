"""A new tensor of the default device that ``forward`` makes in the size of its input, and returns as it is."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devlint.flow.core.events import Observer
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.tensors import as_tensor, surely_tensor
from devlint.flow.domain.values import Value
from devlint.flow.observers.hints.mixed_operands import is_fresh, lives_with_caller
from devlint.flow.program.def_use import DESCRIPTIONS
from devlint.flow.syntax import nodes
from devlint.sites.placement import Hint, HintKind


class ReturnedCreations(Observer):
    """What a module returns that is on the CPU, wherever its input is."""

    def on_return(self, frame: Frame, node: ast.Return, value: Value) -> None:
        """A module answers with a new tensor, alone or beside others."""
        if frame.info is None or frame.info.name != "forward" or not frame.after_init:
            return
        for part in node.value.elts if isinstance(node.value, ast.Tuple) else (node.value,):
            made = None if part is None else frame.evaluate(part) if isinstance(node.value, ast.Tuple) else value
            call = as_tensor(made).origin.node if made is not None and is_fresh(made) else None
            beside = None if call is None else next(_measured(frame, call), None)
            written = isinstance(part, ast.Name) and _is_written_into(frame, part.id)
            # of what takes in parts of the input, the writes tell
            if made is not None and call is not None and beside is not None and not written:
                stray, other = frame.operand(call, made), frame.operand(*beside)
                frame.emit(Hint(node, scope_of(frame), HintKind.RETURNED, stray, other))


def _measured(frame: Frame, made: ast.AST) -> Iterator[tuple[ast.Name, Value]]:
    """The arguments, tensors that nobody moved, whose size a creation is given."""
    sizes = {part.id for part in nodes.walk(made) if isinstance(part, ast.Name)}
    assigned = [one for one in (frame.info.nodes if frame.info else ()) if isinstance(one, ast.Assign)]
    named = [one.value for one in assigned if any(name in sizes for name in map(_only_name, _targets(one)))]
    for part in (inner for whole in (made, *named) for inner in nodes.walk(whole)):
        if isinstance(part, ast.Attribute) and part.attr in DESCRIPTIONS and isinstance(part.value, ast.Name):
            held = frame.lookup(part.value.id)
            if held is not None and surely_tensor(held) and lives_with_caller(as_tensor(held)):
                yield part.value, held


def _is_written_into(frame: Frame, name: str) -> bool:
    """Whether the function gives parts of what has a name other values."""
    stores = (part for part in (frame.info.nodes if frame.info else ()) if isinstance(part, ast.Subscript))
    return any(isinstance(part.ctx, ast.Store) and _only_name(part.value) == name for part in stores)


def _targets(node: ast.Assign) -> list[ast.expr]:
    """What an assignment gives values to, each part of a tuple for itself."""
    return [part for target in node.targets for part in (target.elts if isinstance(target, ast.Tuple) else [target])]


def _only_name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""
