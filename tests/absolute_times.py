"""Where a test wants a time to be short, by its tree: a slow machine fails it, and a fast one proves little."""

from __future__ import annotations

import ast
from collections.abc import Iterator

LEAST_TIMEOUT = 60
"""Seconds: what is given fewer need not hang, it may be slow."""
_CLOCKS = {f"{name}{unit}" for name in ("monotonic", "perf_counter", "process_time", "time") for unit in ("", "_ns")}
_CLOCKS |= {"getrusage", "thread_time", "times"}
_MODULES = {"os", "resource", "time"}
_DURATIONS = {"cpu_seconds", "elapsed", "seconds"}
"""Attributes that are differences of clock readings."""
_SUMMARIES = {"abs", "fastest", "float", "list", "max", "mean", "median", "min", "round", "sorted", "sum", "zip"}


def absolute_times(module: ast.Module) -> Iterator[int]:
    """The lines in which it is asserted that a duration is less than something that is none, such as a number."""
    known = _Durations(module)
    asserted = [node.test for node in ast.walk(module) if isinstance(node, ast.Assert)]
    for node in (part for test in asserted for part in ast.walk(test)):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            for left, operator, right in zip(sides, node.ops, sides[1:], strict=False):
                less, more = (left, right) if isinstance(operator, (ast.Lt, ast.LtE)) else (right, left)
                ordered = isinstance(operator, (ast.Lt, ast.LtE, ast.Gt, ast.GtE))
                if ordered and known.is_duration(less) and not known.is_duration(more):
                    yield node.lineno


def short_timeouts(module: ast.Module) -> Iterator[int]:
    """The lines in which something is given a timeout that a slow machine may need."""
    numbers = {
        target.id: node.value.value
        for node in module.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(module):
        if isinstance(node, ast.keyword) and node.arg == "timeout":
            given = node.value.value if isinstance(node.value, ast.Constant) else None
            given = numbers.get(node.value.id) if isinstance(node.value, ast.Name) else given
            if isinstance(given, (int, float)) and given < LEAST_TIMEOUT:
                yield node.lineno


class _Durations:
    """Which names of a module are readings of a clock, and which are, or return, differences of them."""

    def __init__(self, module: ast.Module) -> None:
        self._readings: set[str] = set()
        self._durations: set[str] = set()
        before = -1
        while before != (before := len(self._readings) + len(self._durations)):
            for node in ast.walk(module):
                self._learn(node)

    def is_duration(self, node: ast.expr) -> bool:
        if isinstance(node, ast.BinOp):
            left, right = self.is_duration(node.left), self.is_duration(node.right)
            if isinstance(node.op, ast.Div):
                return left and not right  # the ratio of two is no time
            return left or right or self._is_difference(node)
        if isinstance(node, ast.Name):
            return node.id in self._durations
        if isinstance(node, ast.Attribute):
            return node.attr in self._durations | _DURATIONS
        if isinstance(node, ast.Call):
            inside = _name(node.func) in _SUMMARIES and any(map(self.is_duration, node.args))
            return inside or self.is_duration(node.func)
        if isinstance(node, (ast.Subscript, ast.Starred)):
            return self.is_duration(node.value)
        if isinstance(node, (ast.Tuple, ast.List)):
            return any(map(self.is_duration, node.elts))
        return isinstance(node, (ast.GeneratorExp, ast.ListComp)) and self.is_duration(node.elt)

    def _is_difference(self, node: ast.BinOp) -> bool:
        shifted = isinstance(node.right, ast.Constant)  # by some seconds, which is a reading still
        readings = self._is_reading(node.left) or self._is_reading(node.right)
        return isinstance(node.op, ast.Sub) and readings and not shifted

    def _is_reading(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Call):
            owner = node.func.value if isinstance(node.func, ast.Attribute) else None
            return _name(node.func) in _CLOCKS and (owner is None or _name(owner) in _MODULES)
        if isinstance(node, ast.Attribute):
            return self._is_reading(node.value)
        return isinstance(node, ast.Name) and node.id in self._readings

    def _learn(self, node: ast.AST) -> None:
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr)) and node.value is not None:
            self._bind(node.targets if isinstance(node, ast.Assign) else [node.target], node.value)
        elif isinstance(node, (ast.For, ast.comprehension)):
            self._bind([node.target], node.iter)
        elif isinstance(node, ast.FunctionDef):
            returned = (part.value for part in ast.walk(node) if isinstance(part, ast.Return) and part.value)
            if any(map(self.is_duration, returned)):
                self._durations.add(node.name)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "append":
            self._bind([node.func.value], node.args[0])

    def _bind(self, targets: list[ast.expr], value: ast.expr) -> None:
        for kind, holds in ((self._durations, self.is_duration), (self._readings, self._is_reading)):
            if holds(value):
                names = (part for target in targets for part in ast.walk(target) if isinstance(part, ast.Name))
                kind |= {name.id for name in names}


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
