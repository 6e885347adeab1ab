"""Process groups: how a file makes one, and whether its processes choose a device of their own."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from devlint.flow.core.call import Call
from devlint.flow.core.events import Observer
from devlint.flow.core.interpreter import Frame, Interpreter
from devlint.flow.core.registry import MODELS
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.values import Const, Value
from devlint.flow.models.nn.parallel import CHOSEN, RANK
from devlint.flow.models.torch.functions import function
from devlint.flow.program.symbols import FunctionInfo
from devlint.immutable import immutable, replace
from devlint.sites.base import Scope, Step
from devlint.sites.distributed import Group

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
_CHOOSE = frozenset({"torch.cuda.set_device", "torch.accelerator.set_device_index"})
_CALLS: frozenset[str] = _OBJECTS | _CHOOSE | {_INIT, _BARRIER}
"""The functions that are looked at: those of ``torch.distributed`` and those that choose a process's device."""
_SET_UP = re.compile(r"(?<!cuda\.)\b((?:get|set|set_?up|init|initialize|select|choose|prepare)_devices?)\(")
"""The name of a function which may well make the device that it returns the current one."""
_ALONE = re.compile(r"""^[ \t]*(?:os\.)?environ\[["']WORLD_SIZE["']\] *= *["']1["']""", re.MULTILINE)
"""Where a file says to itself how many processes there are: this one."""
_ENTRY = re.compile(r"""^if\s+__name__\s*==|mp\.spawn\(|multiprocessing\.spawn\(""", re.MULTILINE)


@dataclass(frozen=True)
class _Made:
    node: ast.AST
    scope: Scope
    backend: str
    info: FunctionInfo | None


@immutable(frozen=True, slots=True)
class _Order:
    """What a function has done so far: made a group of NCCL, met in it, chosen a device."""

    node: ast.Call
    waits: ast.Call | None = None
    inside: bool = True
    """Whether the function itself waits, not one that it calls."""
    chosen: bool = False


class Groups(Observer):
    """The process groups of a file."""

    wants_inlined = True
    wants_quiet = True

    def __init__(self, interpreter: Interpreter) -> None:
        self._text = interpreter.own_text
        self._chosen = False
        self._made: dict[ast.AST, _Made] = {}
        self._ranked: dict[FunctionInfo | None, ast.AST] = {}
        self._waits: Step | None = None
        self._order: dict[FunctionInfo | None, _Order] = {}
        self._late: dict[ast.AST, Group] = {}

    def note(self, frame: Frame, call: Call, path: str) -> None:
        """A call of one of the functions that matter."""
        if not frame.interpreter.muted:
            self._ordered(frame, call, path)
        if path in _CHOOSE:
            return
        if path == _INIT:
            if "device_id" in call.keywords or call.open:
                self._chosen = True
            backend = call.argument(0, "backend")
            if backend == Const("nccl") and not frame.state.accelerated:
                # NCCL needs CUDA
                frame.state.required = True
            name = backend.value if isinstance(backend, Const) and isinstance(backend.value, str) else ""
            if not self._is_alone(call):
                self._made.setdefault(call.node, _Made(call.node, scope_of(frame), name, frame.info))
        elif self._waits is None and not _names_device(call):
            self._waits = Step(call.node, "this uses the current device")

    def _ordered(self, frame: Frame, call: Call, path: str) -> None:
        """What a function and those that it calls do first: meet in a group, or choose a device."""
        root = frame
        while root.caller is not None:
            root = root.caller
        order = self._order.get(root.info)
        if path == _INIT:
            backend = call.argument(0, "backend")
            nccl = isinstance(backend, Const) and str(backend.value).lower() == "nccl"
            told = call.open or "device_id" in call.keywords
            if order is None and nccl and not told and not self._is_alone(call):
                self._order[root.info] = _Order(call.node)
        elif path in _CHOOSE:
            if order is not None and order.waits is not None and frame is root:
                self._too_late(frame, call, order, order.waits)
            self._order[root.info] = _Order(call.node, chosen=True)
        elif order is not None and not order.chosen and order.waits is None and not _names_device(call):
            self._order[root.info] = replace(order, waits=call.node, inside=frame is root)

    def _too_late(self, frame: Frame, call: Call, order: _Order, waits: ast.Call) -> None:
        """A process chooses its device after it has met others, unless one path does the one and one the other."""
        apart = _apart(frame, waits, call.node) if order.inside else frame.branches > 0
        if not apart and not isinstance(call.argument(0, "device"), Const):
            met = Step(waits, "this uses the current device")
            late = Step(call.node, "the process chooses its device here")
            self._late.setdefault(waits, Group(order.node, scope_of(frame), "nccl", None, met, True, late))

    def _is_alone(self, call: Call) -> bool:
        """Whether a group is one of a single process, which has nobody to share a device with."""
        size = call.argument(3, "world_size")
        return size == Const(1) or (size is None and not call.open and _ALONE.search(self._text) is not None)

    def on_device_index(self, frame: Frame, node: ast.AST, index: Value, spelled: str) -> None:
        """A device is named by a number that is computed, which may differ from process to process."""
        if RANK.search(getattr(index, "text", "")):
            self._ranked.setdefault(frame.info, node)

    def _is_set_up(self) -> bool:
        """Whether code that cannot be seen from here may choose the device."""
        return any(f"def {name}(" not in self._text for name in _SET_UP.findall(self._text))

    def sites(self) -> Iterator[Group]:
        """A site for each process group whose processes choose no device, or too late, as far as the file shows."""
        yield from self._late.values()
        if not self._made or self._chosen or CHOSEN.search(self._text) or self._is_set_up():
            return
        entry = _ENTRY.search(self._text) is not None
        for made in self._made.values():
            named = self._ranked.get(made.info)
            whole = entry or made.info is None
            yield Group(made.node, made.scope, made.backend, named, self._waits, whole)


def _names_device(call: Call) -> bool:
    """Whether a collective is told its device."""
    return "device" in call.keywords or "device_ids" in call.keywords


def _apart(frame: Frame, first: ast.AST, second: ast.AST) -> bool:
    """Whether two places stand on different sides of a branch."""
    for branch in frame.inside:
        if isinstance(branch, ast.If) and branch.orelse:
            sides = [any(_holds(part, node) for part in branch.body) for node in (first, second)]
            others = [any(_holds(part, node) for part in branch.orelse) for node in (first, second)]
            if (sides[0] and others[1]) or (others[0] and sides[1]):
                return True
    return False


def _holds(statement: ast.stmt, node: ast.AST) -> bool:
    return statement.lineno <= getattr(node, "lineno", 0) <= (statement.end_lineno or 0)


def _called(frame: Frame, call: Call, path: str) -> Value:
    frame.component(Groups).note(frame, call, path)
    return function(frame, call, path)


MODELS.register(dict.fromkeys(_CALLS, _called))
