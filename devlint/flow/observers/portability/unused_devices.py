"""Devices that are chosen and given a name, and whether anybody reads that name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property

from devlint.flow.catalog import torch_table
from devlint.flow.catalog.concepts import LOADER
from devlint.flow.core.events import Observer
from devlint.flow.core.interpreter import Frame, Interpreter
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.tensors import DeviceValue
from devlint.flow.domain.values import Value
from devlint.flow.program.symbols import FunctionInfo
from devlint.flow.syntax import names, nodes
from devlint.immutable import immutable
from devlint.sites.base import Scope, Step
from devlint.sites.placement import UnusedDevice

_PLACES = r"""(?x)\.(?:to|cuda|xpu|mps|hpu|npu|to_empty|type)\(|[(,]\s*device\s*=|device_map|set_default|set_device
    |cuda\.\w*Tensor|DataParallel|FullyShardedDataParallel|fully_shard|Accelerator|\w*Trainer\(|Learner\("""
"""What may place a model in some other way than by the name."""
_COMMENT = r"#.*"
_DYNAMIC = frozenset({"locals", "globals", "vars", "exec", "eval", "setattr"})
_SHOWS = frozenset({"print", "info", "debug", "warning", "log", "write", "print_log", "pprint", "rprint"})


@immutable(frozen=True, slots=True)
class _Chosen:
    target: ast.Name
    info: FunctionInfo | None
    scope: Scope
    value: DeviceValue


class UnusedDevices(Observer):
    """The devices that a file chooses by name."""

    wants_quiet = True

    def __init__(self, interpreter: Interpreter) -> None:
        self._index = interpreter.index
        self._text = interpreter.own_text
        self._chosen: dict[tuple[FunctionInfo | None, str], _Chosen] = {}

    def on_binding(self, frame: Frame, target: ast.Name, value: Value) -> None:
        """A name is bound to a device: in a function, or at the top level of the file, but not in a class."""
        if not isinstance(value, DeviceValue) or target.id.startswith("_"):
            return
        in_class = frame.info is None and frame.caller is not None
        place = value.device
        if in_class or not (place.switched or place.accelerates()):
            return
        self._chosen.setdefault((frame.info, target.id), _Chosen(target, frame.info, scope_of(frame), value))

    def sites(self) -> Iterator[UnusedDevice]:
        """A site for each name that nobody reads, where something trains that nobody places."""
        for chosen in self._chosen.values():
            if self._placed:
                return
            inside = chosen.info.nodes if chosen.info else nodes.walk(self._index.tree)
            works = self._works(chosen.info)
            if works is None or _escapes(inside, chosen.target.id):
                continue
            reads = [
                node
                for node in inside
                if isinstance(node, ast.Name) and node.id == chosen.target.id and isinstance(node.ctx, ast.Load)
            ]
            shows = (node for node in inside if names.called(node).rpartition(".")[2] in _SHOWS)
            shown = {id(inner) for node in shows for inner in nodes.walk(node)}
            if all(id(node) in shown for node in reads):
                step = Step(reads[0], "only shown here") if reads else None
                yield UnusedDevice(chosen.target, chosen.scope, chosen.target.id, chosen.value.device, works, step)

    @cached_property
    def _placed(self) -> bool:
        """Whether the file places anything in a way of its own."""
        return re.search(_PLACES, re.sub(_COMMENT, "", self._text)) is not None or self._index.runs("training")

    def _works(self, info: FunctionInfo | None) -> Step | None:
        """Where the code beside the choice trains a network, or loads batches for one."""
        made = False
        found: Step | None = None
        for node in info.own if info else self._index.own:
            if not isinstance(node, ast.Call):
                continue
            if names.method(node) == "backward":
                return Step(node, "trained here")
            path = self._index.resolve(names.dotted(node.func))
            own = self._index.classes.get(path)
            made = made or torch_table.module(path) is not None or (own is not None and own.is_module)
            if path == LOADER:
                found = Step(node, "its batches come from here")
        return found if made else None


def _escapes(inside: list[ast.AST], name: str) -> bool:
    """Whether a name may be read in ways that cannot be seen: by others, or by looking at all names."""
    for node in inside:
        if isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names:
            return True
        if names.called(node) in _DYNAMIC:
            return True
        if isinstance(node, ast.Assign) and any(names.dotted(target) == "__all__" for target in node.targets):
            return True
    return False
