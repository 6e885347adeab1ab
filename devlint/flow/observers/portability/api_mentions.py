"""Mentions: names of torch that the code speaks of, and whether it does so for the sake of another version."""

from __future__ import annotations

import ast
import re

from devlint import torch_api
from devlint.flow.catalog.accelerator_api import CUDA_TENSOR_TYPE
from devlint.flow.catalog.libraries import canonical
from devlint.flow.core.call import Call
from devlint.flow.core.events import Observer
from devlint.flow.core.interpreter import Frame, Interpreter
from devlint.flow.core.scope import in_shim, scope_of_placement
from devlint.flow.domain.values import Named, Opaque, Unknown, Value
from devlint.flow.syntax import names
from devlint.flow.syntax.device_tests import is_type_test
from devlint.sites.devices import Mention
from devlint.torch_api.rows import PROFILED_EVENT

_SWITCHES = ("pin_memory", "non_blocking", "enabled")
"""Keywords that take the answer to a question, and never the question itself."""
_SKIPS = frozenset({"skipif", "skipIf", "skipUnless", "bool"})


class ApiMentions(Observer):
    """The names of torch of which the tables know something."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._shims: set[str] = set()
        """What has been imported for the sake of another version."""
        self._profiled = _profiled(interpreter.own_text)

    def on_name(self, frame: Frame, node: ast.expr, path: str, call: ast.Call | None) -> None:
        """A name of torch is spoken of, or called."""
        if not torch_api.concerns(path, call) or (
            isinstance(node, ast.Constant) and not CUDA_TENSOR_TYPE.fullmatch(path)
        ):
            return
        asking = frame.asking if call is None else None
        if frame.decorator is not None and frame.decorator in (node, call):
            self._mention(frame, node, path, call, "decorator")
        elif asking is not None and not is_type_test(asking.func):
            self._mention(frame, node, path, asking, "conversion")
        else:
            compared = asking is not None or (frame.comparing and call is None)
            self._mention(frame, node, path, call, "comparison" if compared else "")

    def on_attribute(self, frame: Frame, node: ast.Attribute, value: Value) -> None:
        """An attribute of something unknown may be one of an event that a profiler has recorded."""
        if node.attr in self._profiled and isinstance(value, (Opaque, Unknown)):
            self._mention(frame, node, f"{PROFILED_EVENT}.{node.attr}")

    def on_import(self, frame: Frame, node: ast.ImportFrom) -> None:
        """Names of torch are imported."""
        for alias in node.names:
            path = canonical(f"{node.module}.{alias.name}") if not node.level else ""
            if torch_api.concerns(path, None):
                if in_shim(frame):
                    self._shims.add(path)
                self._mention(frame, alias, path, use="import")

    def on_test(self, frame: Frame, node: ast.expr, value: Value, use: str = "test") -> None:
        """A function of torch is asked whether it is true."""
        if isinstance(value, Named) and value.path in torch_api.AVAILABILITY:
            self._mention(frame, node, value.path, use=use)

    def on_call(self, frame: Frame, call: Call) -> None:
        """The truth of arguments may be asked for: of a condition for skipping a test, of a switch of torch."""
        if call.positional and names.dotted(call.node.func).rpartition(".")[2] in _SKIPS:
            self.on_test(frame, call.nodes[0], call.positional[0])
        for name in _SWITCHES:
            if name in call.keyword_nodes:
                self.on_test(frame, call.keyword_nodes[name], call.keywords[name], "switch")

    def _mention(self, frame: Frame, node: ast.AST, path: str, call: ast.Call | None = None, use: str = "") -> None:
        shim = path in self._shims or in_shim(frame)
        frame.emit(Mention(node, scope_of_placement(frame, node), path, call, use, shim))


def _profiled(text: str) -> frozenset[str]:
    """The attributes which a file can only mean as those of profiled events: it speaks of them, and defines none."""
    if "cuda_" not in text or "profile" not in text:
        return frozenset()
    read = {name for name in re.findall(r"\.(\w*cuda_\w+)", text) if torch_api.matters(f"{PROFILED_EVENT}.{name}")}
    return frozenset(name for name in read if not re.search(rf"\b{name}\s*(?::[^\n=]+)?=(?!=)|def {name}\b", text))
