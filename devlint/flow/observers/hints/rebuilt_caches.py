"""A cache that is made anew because it is not where an argument is, and is not made there."""

from __future__ import annotations

import ast

from devlint.device import Kind
from devlint.flow.core.events import Observer
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.tensors import Tensor, as_tensor
from devlint.flow.domain.values import Value
from devlint.flow.syntax import names, nodes
from devlint.sites.placement import Hint, HintKind


class RebuiltCaches(Observer):
    """New tensors of the default device, kept where ``self.mask.device != x.device``."""

    def on_store(self, frame: Frame, target: ast.Attribute, base: Value, value: Value, node: ast.AST) -> None:
        """A method keeps what it has made."""
        new = isinstance(value, Tensor) and value.device.kind is Kind.CPU and value.device.implied and value.many
        if not new or not frame.after_init or not names.of_self(target) or as_tensor(value).origin.node is None:
            return
        for asked in frame.inside:
            if isinstance(asked, ast.If) and any(target in nodes.walk(statement) for statement in asked.body):
                for beside in _compared(asked.test, names.dotted(target)):
                    stray, other = frame.operand(node, value), frame.operand(beside, frame.evaluate(beside))
                    frame.emit(Hint(node, scope_of(frame), HintKind.REBUILT, stray, other))


def _compared(test: ast.expr, kept: str) -> list[ast.expr]:
    """The tensors on whose devices something is not, where a test holds."""
    if isinstance(test, ast.BoolOp):
        return [found for part in test.values for found in _compared(part, kept)]
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.NotEq):
        return []
    asked = [side for side in (test.left, test.comparators[0]) if isinstance(side, ast.Attribute)]
    sides = [side.value for side in asked if side.attr == "device"]
    others = [side for side in sides if names.dotted(side) != kept]
    return others if len(sides) == 2 and len(others) == 1 else []
