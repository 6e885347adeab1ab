"""Methods that move a tensor and are not called: the method itself is returned, or takes the tensor's place."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devlint.flow.catalog.methods import MOVERS
from devlint.flow.core.events import Observer
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.tensors import Tensor, as_tensor
from devlint.flow.domain.values import Opaque, Value
from devlint.flow.syntax import names
from devlint.sites.transfers import Uncalled


class UncalledMoves(Observer):
    """What is meant for a moved tensor, and is a method of it."""

    def on_attribute(self, frame: Frame, node: ast.Attribute, value: Value) -> None:
        """A site where a method that moves a tensor is what a function returns, or what its name stands for then."""
        if node.attr not in MOVERS or not isinstance(node.value, ast.Name):
            return
        base = frame.lookup(node.value.id)
        known = isinstance(base, Tensor) or (isinstance(base, Opaque) and base.hint == "tensor")
        if base is None or not known or not as_tensor(base).certain:
            return
        if any(part is node for whole in frame.inside for part in _outcomes(whole, node.value.id)):
            frame.emit(Uncalled(node, scope_of(frame), node.attr, frame.operand(node.value, base)))


def _outcomes(node: ast.AST, name: str) -> Iterator[ast.expr]:
    """What a statement may return, or give a name to which it had before."""
    named = isinstance(node, ast.Assign) and any(names.is_name(target, name) for target in node.targets)
    if (
        isinstance(node, (ast.Return, ast.Assign))
        and node.value is not None
        and (named or isinstance(node, ast.Return))
    ):
        yield from _either(node.value)


def _either(node: ast.expr) -> Iterator[ast.expr]:
    """The expressions of which one is the value of another."""
    if isinstance(node, ast.IfExp):
        yield from (*_either(node.body), *_either(node.orelse))
    else:
        yield node
