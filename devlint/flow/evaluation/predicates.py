"""Predicates: the expressions that a test is made of, under one name for one expression on the same values.

Tests of which asking changes nothing have their conditions told once (:func:`keep`).
"""

from __future__ import annotations

import ast
import functools
import re

from devlint.device import Condition, Predicate, Topic, TypePredicate
from devlint.flow.catalog.concepts import TENSOR
from devlint.flow.core.interpreter import Frame
from devlint.flow.domain.objects import Instance, Module
from devlint.flow.domain.values import Const, Flag, Named, Opaque, Value
from devlint.flow.syntax import names, nodes

_VOLATILE = re.compile(r"[@#]|:\d+:\d+")
"""In the key of an expression: something that was bound, or computed, on the way."""
_NAME = re.compile(r"(?:[^#@]*:)?([^\W\d]\w*)(?:#|@[\d:]+$)")
"""The key of what begins with a name that is bound to something known, or is a name alone."""
_TELLING = ("device_count", "gpu", "accelerator", "nccl", "is_cuda", "__name__", "version", "torch")
"""What is in the key of any expression that has a topic."""
_BACKEND = (".NCCL", "'nccl'")
_VERSION = re.compile(
    r"__version__|hasattr#\(torch|(?<![a-z])version(?![a-z])|(?<![a-z])torch[a-z_]*\d|torch_(?:greater|less|at_least)",
    re.IGNORECASE,
)
_PRESENCE = re.compile(r"(?!.*(?:^|[._:])(?:no|not|without|cpu)_).*(?:^|[._:])(?:gpus?|accelerators?)(?:$|[._])")
"""How the name of a function says that there is an accelerator where the function says yes."""

_ASKING = frozenset({"isinstance", "len", "hasattr"})
"""Python's own functions that change nothing."""
_READING = (
    *(ast.Attribute, ast.BinOp, ast.BoolOp, ast.Compare, ast.Constant, ast.List, ast.Set, ast.Slice),
    *(ast.Subscript, ast.Tuple, ast.UnaryOp),
)


@functools.lru_cache(maxsize=4096)
def predicate(text: str, subject: str = "") -> Predicate:
    """The predicate whose key is ``text``, with what it asks about."""
    name = _NAME.match(text)
    return Predicate(text, subject, name[1] if name else "", _topics(text), _VOLATILE.search(text) is not None)


def _topics(text: str) -> tuple[Topic, ...]:
    lowered = text.lower()
    if not any(word in lowered for word in _TELLING):
        return ()
    found = {
        Topic.COUNT: "device_count" in text,
        Topic.PRESENCE: text.endswith(")") and _PRESENCE.match(re.split(r"[(#]", lowered)[0]),
        Topic.BACKEND: text.endswith(_BACKEND),
        Topic.PLACE: text.endswith(".is_cuda"),
        Topic.MAIN: "__name__" in text,
        Topic.VERSION: _VERSION.search(text),
    }
    return tuple(topic for topic, asked in found.items() if asked)


def of(frame: Frame, node: ast.expr) -> Predicate:
    """The predicate that an expression is, taken as true or false."""
    return predicate(key(frame, node))


def of_type(frame: Frame, node: ast.Call) -> Condition:
    """The predicate ``isinstance(value, classes)``, or ``torch.is_tensor(value)``."""
    classes = frozenset({TENSOR})
    if len(node.args) == 2:
        listed = node.args[1].elts if isinstance(node.args[1], ast.Tuple) else [node.args[1]]
        classes = frozenset(frame.interpreter.index.resolve(names.dotted(one)) for one in listed)
    return TypePredicate(of(frame, node), key(frame, node.args[0]), classes)


def key(frame: Frame, node: ast.expr) -> str:
    """The text of an expression, with the names in it told apart by what they are bound to."""
    if isinstance(node, ast.Name):
        value = frame.lookup(node.id)
        if isinstance(value, Opaque):
            return value.key
        if isinstance(value, Named):
            return value.path
        return f"{frame.interpreter.index.label}{node.id}#{_fingerprint(value)}"
    if isinstance(node, ast.Attribute):
        kept = held(frame, node)
        return kept.key if isinstance(kept, Opaque) else f"{key(frame, node.value)}.{node.attr}"
    if isinstance(node, ast.Constant):
        return repr(node.value)
    if isinstance(node, ast.Call):
        inside = ", ".join(key(frame, argument) for argument in node.args)
        return f"{key(frame, node.func)}({inside})"
    if isinstance(node, ast.Tuple):
        return f"({', '.join(key(frame, item) for item in node.elts)})"
    version = any(isinstance(part, ast.Attribute) and part.attr == "__version__" for part in nodes.walk(node))
    what = "__version__" if version else type(node).__name__
    return f"{what}:{frame.at(node)}"


def held(frame: Frame, node: ast.Attribute) -> Value | None:
    """What the attribute of a name is known to hold, where that is an object of a class that is known."""
    base = frame.lookup(node.value.id) if isinstance(node.value, ast.Name) else None
    kept = frame.state.heap.get((base.oid, node.attr)) if isinstance(base, (Module, Instance)) else None
    return kept if isinstance(kept, Value) else None


def _fingerprint(value: Value | None) -> str:
    if isinstance(value, Const):
        return repr(value.value)
    if isinstance(value, Flag):
        return value.condition.text
    return "" if value is None else str(id(value))


def keep(frame: Frame, test: ast.expr) -> tuple[str, ...]:
    """Until further notice, know the conditions in a test once they are told, if asking them changes nothing.

    Every part is asked for by whoever evaluates it, by what it is a part of, and by the statement.  Returned are the
    names in the test.
    """
    known = frame.interpreter.asked
    called, named = known[test] if test in known else known.setdefault(test, _read(test))
    if called is not None and all(frame.lookup(name) is None for name in called):
        frame.conditions = {}
    return named


def _read(test: ast.expr) -> tuple[frozenset[str] | None, tuple[str, ...]]:
    """The functions that a test calls, if all of them are Python's own, and it does nothing but ask; and its names."""
    called: set[str] = set()
    named: dict[str, None] = {}
    idle = True
    for node in nodes.walk(test):
        if isinstance(node, ast.Name):
            named[node.id] = None
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _ASKING:
            called.add(node.func.id)
        else:
            idle = idle and isinstance(node, _READING)
    return frozenset(called) if idle else None, tuple(named)
