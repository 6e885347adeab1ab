"""Process groups: how a file makes one, and whether its processes choose a device of their own."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from devlint.flow.values import Const, Value
from devlint.flow.wrapping import CHOSEN
from devlint.sites import Group, Scope, Step

if TYPE_CHECKING:
    from devlint.flow.frame import Call, Frame
    from devlint.flow.index import FunctionInfo

_INIT = "torch.distributed.init_process_group"
_BARRIER = "torch.distributed.barrier"
_OBJECTS = frozenset(
    f"torch.distributed.{name}"
    for name in (
        "all_gather_object",
        "gather_object",
        "broadcast_object_list",
        "scatter_object_list",
        "monitored_barrier",
    )
)
CALLS: frozenset[str] = _OBJECTS | {_INIT, _BARRIER}
"""The functions of ``torch.distributed`` that are looked at."""
_RANK = re.compile(r"rank|gpu", re.IGNORECASE)
_ENTRY = re.compile(r"""^if\s+__name__\s*==|mp\.spawn\(|multiprocessing\.spawn\(""", re.MULTILINE)


@dataclass(frozen=True)
class _Made:
    node: ast.AST
    scope: Scope
    backend: str
    info: FunctionInfo | None


class Groups:
    """The process groups of a file."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._chosen = False
        self._made: dict[ast.AST, _Made] = {}
        self._ranked: dict[FunctionInfo | None, ast.AST] = {}
        self._waits: Step | None = None

    def note(self, frame: Frame, call: Call, path: str) -> None:
        """A call of one of the functions that matter."""
        if path == _INIT:
            if "device_id" in call.keywords or call.open:
                self._chosen = True
            backend = call.argument(0, "backend")
            if backend == Const("nccl") and not frame.state.accelerated:
                # NCCL needs CUDA
                frame.state.required = True
            name = backend.value if isinstance(backend, Const) and isinstance(backend.value, str) else ""
            self._made.setdefault(call.node, _Made(call.node, frame.scope(), name, frame.info))
        elif self._waits is None and "device" not in call.keywords and "device_ids" not in call.keywords:
            self._waits = Step(call.node, "this uses the current device")

    def ranked(self, frame: Frame, node: ast.AST, index: Value) -> None:
        """A device is named whose index differs from process to process."""
        if _RANK.search(getattr(index, "text", "")):
            self._ranked.setdefault(frame.info, node)

    def sites(self) -> Iterator[Group]:
        """A site for each process group whose processes choose no device, as far as the file shows."""
        if not self._made or self._chosen or CHOSEN.search(self._text):
            return
        entry = _ENTRY.search(self._text) is not None
        for made in self._made.values():
            named = self._ranked.get(made.info)
            whole = entry or made.info is None
            yield Group(made.node, made.scope, made.backend, named, self._waits, whole)
