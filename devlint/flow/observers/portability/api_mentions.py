"""Mentions: names of torch that the code speaks of, and whether it does so for the sake of another version."""

from __future__ import annotations

import ast
import re

from devlint import torch_api
from devlint.device import Topic
from devlint.flow.catalog.libraries import canonical
from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Component, Frame, Interpreter
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.values import Named
from devlint.flow.observers.portability import gpu_selection
from devlint.flow.syntax import names, nodes
from devlint.sites.devices import Mention
from devlint.torch_api import rows

matters = torch_api.matters

_SWITCHES = frozenset({"pin_memory", "non_blocking", "enabled"})
"""Keywords that take the answer to a question, and never the question itself."""
_SKIPS = frozenset({"skipif", "skipIf", "skipUnless", "bool"})
_VERSION_ERRORS = frozenset({"ImportError", "ModuleNotFoundError", "AttributeError", "TypeError"})
_ANY_ERROR = frozenset({"", "Exception", "BaseException"})
_TYPE_TESTS = frozenset({"isinstance", "issubclass"})
_CONVERSIONS = frozenset({"type", "set_default_tensor_type"})
_TENSOR_TYPE = re.compile(r"torch\.cuda\.(?:sparse\.)?\w*Tensor")


def note(frame: Frame, node: ast.expr, path: str, call: ast.Call | None = None) -> None:
    """A name of torch is spoken of, or called."""
    if frame.interpreter.muted or not path.startswith("torch.") or not (matters(path) or _argued(path, call)):
        return
    use = "comparison" if frame.comparing and call is None else ""
    if frame.decorator is not None and frame.decorator in (node, call):
        use = "decorator"
    elif frame.asking is not None and call is None:
        if not is_type_test(frame.asking.func):
            _emit(frame, node, path, frame.asking, "conversion")
            return
        use = "comparison"
    _emit(frame, node, path, call, use)
    if call is not None:
        gpu_selection.numbered_call(frame, call, path)
        if gpu_selection.touches(path):
            gpu_selection.touch(frame, call)
    if call is not None and not (frame.state.accelerated or frame.tried or frame.handler):
        # what comes after is reached only where this succeeds
        frame.state.required = frame.state.required or any(row.raises for row in torch_api.portable_forms(path))


def note_text(frame: Frame, node: ast.Constant) -> None:
    """A string which may name a type of tensors that something is converted to."""
    asking = frame.asking
    if asking is not None and isinstance(node.value, str) and _TENSOR_TYPE.fullmatch(node.value):
        _emit(frame, node, node.value, asking, "comparison" if is_type_test(asking.func) else "conversion")


def asks(node: ast.Call) -> ast.Call | None:
    """The call, if it takes types: to compare them, or to convert to them."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    return node if name in _CONVERSIONS or is_type_test(node.func) else None


def note_method(frame: Frame, node: ast.Attribute, call: ast.Call) -> None:
    """A method of a tensor is called."""
    path = f"torch.Tensor.{node.attr}"
    if not frame.interpreter.muted and _argued(path, call):
        _emit(frame, node, path, call, "")


def note_attribute(frame: Frame, node: ast.Attribute) -> None:
    """An attribute of something unknown is read: perhaps of an event that a profiler has recorded."""
    if node.attr in frame.component(Profiled).names and not frame.interpreter.muted:
        _emit(frame, node, f"{rows.PROFILED_EVENT}.{node.attr}", None, "")


class Profiled(Component):
    """The attributes by which a file can only mean those of profiled events."""

    def __init__(self, interpreter: Interpreter) -> None:
        self.names = _profiled(interpreter.own_text)


def _profiled(text: str) -> frozenset[str]:
    """The attributes which a file can only mean as those of profiled events: it speaks of them, and defines none."""
    if "cuda_" not in text or "profile" not in text:
        return frozenset()
    read = {name for name in re.findall(r"\.(\w*cuda_\w+)", text) if matters(f"{rows.PROFILED_EVENT}.{name}")}
    return frozenset(name for name in read if not re.search(rf"\b{name}\s*(?::[^\n=]+)?=(?!=)|def {name}\b", text))


def note_test(frame: Frame, node: ast.expr, path: str, use: str = "test") -> None:
    """A function of torch is asked whether it is true."""
    if path in torch_api.AVAILABILITY:
        _emit(frame, node, path, None, use)


def note_import(frame: Frame, node: ast.ImportFrom) -> None:
    """Names of torch are imported, one by one."""
    for alias in node.names:
        path = canonical(f"{node.module}.{alias.name}") if not node.level else ""
        if path.startswith("torch.") and matters(path):
            if in_shim(frame):
                frame.interpreter.shims.add(path)
            _emit(frame, alias, path, None, "import")


def _emit(frame: Frame, node: ast.AST, path: str, call: ast.Call | None, use: str) -> None:
    shim = path in frame.interpreter.shims or in_shim(frame)
    frame.emit(Mention(node, scope_of(frame), path, call, use, shim))


def _argued(path: str, call: ast.Call | None) -> bool:
    """Whether the call gives an argument of which the tables know something."""
    rows = torch_api.arguments(path) if call is not None else ()
    if call is None or not rows:
        return False
    given = {keyword.arg for keyword in call.keywords}
    return any(row.argument in given or (row.position is not None and len(call.args) > row.position) for row in rows)


def in_shim(frame: Frame) -> bool:
    """Whether the code that runs is there for the sake of another version of torch."""
    outer = (frame.info, frame.owner)
    return frame.shim or any(info is not None and info.shim for info in outer) or frame.state.asked(Topic.VERSION)


def tries_versions(node: ast.Try) -> bool:
    """Whether a ``try`` handles that a name is missing."""
    caught = {name for handler in node.handlers for name in _caught(handler)}
    imports = any(isinstance(statement, (ast.Import, ast.ImportFrom)) for statement in node.body)
    return not caught.isdisjoint(_VERSION_ERRORS) or (imports and not caught.isdisjoint(_ANY_ERROR))


def _caught(handler: ast.ExceptHandler) -> set[str]:
    if handler.type is None:
        return {""}
    return {names.dotted(part) for part in nodes.walk(handler.type) if isinstance(part, (ast.Name, ast.Attribute))}


def is_type_test(function: ast.expr) -> bool:
    """Whether a call of ``function`` compares types."""
    return isinstance(function, ast.Name) and function.id in _TYPE_TESTS


def note_truths(frame: Frame, call: Call) -> None:
    """Arguments of which the truth is asked for: a condition for skipping a test, a switch of torch."""
    first = call.positional[0] if call.positional else None
    if isinstance(first, Named) and _skips(call.node):
        note_test(frame, call.nodes[0], first.path)
    if not call.keywords or _SWITCHES.isdisjoint(call.keywords):
        return
    for name in _SWITCHES:
        value = call.keywords.get(name)
        if isinstance(value, Named) and name in call.keyword_nodes:
            note_test(frame, call.keyword_nodes[name], value.path, "switch")


def _skips(node: ast.Call) -> bool:
    return names.dotted(node.func).rpartition(".")[2] in _SKIPS
