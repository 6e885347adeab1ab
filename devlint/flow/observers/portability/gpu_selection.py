"""What a file chooses accelerators by: numbers, questions for CUDA, the current accelerator, variables."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property

from devlint.device import AVAILABLE, Kind, Topic, parse
from devlint.flow.catalog.accelerator_api import CUDA_CHOOSERS, CURRENT_ACCELERATOR
from devlint.flow.catalog.concepts import DEVICE
from devlint.flow.core.call import Call
from devlint.flow.core.events import Observer
from devlint.flow.core.interpreter import Frame, Interpreter
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.tensors import DeviceValue, named_place
from devlint.flow.domain.values import Const, Flag, Named, Value
from devlint.flow.program.symbols import FunctionInfo
from devlint.flow.syntax import names, nodes
from devlint.flow.transfer.api_use import Initialization
from devlint.immutable import replace
from devlint.sites.base import Site, Step
from devlint.sites.devices import Alternative, Current, Numbered, Visible

VARIABLES = frozenset({"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"})
"""The variables by which a process sees only some GPUs, read when the driver is first asked."""
_SPAWNS = r"subprocess|Popen|multiprocessing|mp\.(?:spawn|Process)|\bspawn\(|os\.(?:system|exec|fork)"
_ENVIRONMENT = Named("os.environ")
_SET = frozenset({"os.environ.setdefault", "os.putenv"})


class GpuSelection(Observer):
    """The choices of a file, until it has been read to its end."""

    wants_inlined = True
    wants_quiet = True

    def __init__(self, interpreter: Interpreter) -> None:
        self._text = interpreter.own_text
        self._numbered: list[Numbered] = []
        self._selected: dict[ast.AST, Alternative] = {}
        self._current: dict[ast.AST, tuple[FunctionInfo | None, Current] | None] = {}
        self._asked: set[ast.AST] = set()
        self._started: dict[FunctionInfo, list[bool]] = defaultdict(list)
        self._index = interpreter.index

    @cached_property
    def _spawns(self) -> bool:
        """Whether the file starts other processes."""
        return re.search(_SPAWNS, self._text) is not None or self._index.runs("processes")

    def sites(self) -> Iterator[Site]:
        """The sites that can only be told at the end of a file."""
        indexes = {site.index for site in self._numbered if not site.spelled.startswith("device_ids")}
        for site in self._numbered:
            yield replace(site, others=tuple(sorted(indexes - {site.index})))
        yield from self._selected.values()
        for node, found in self._current.items():
            if found is not None and node not in self._asked and not self._is_behind_a_check(found[0]):
                yield found[1]

    def number(self, frame: Frame, node: ast.AST, index: object, spelled: str) -> None:
        """A GPU is chosen by its number."""
        if isinstance(index, int) and not isinstance(index, bool) and not (frame.interpreter.muted or frame.inlined):
            self._numbered.append(Numbered(node, scope_of(frame), index, spelled))

    def on_device_index(self, frame: Frame, node: ast.AST, index: Value, spelled: str) -> None:
        """A device is named by a number."""
        if isinstance(index, Const):
            self.number(frame, node, index.value, spelled)

    def on_name(self, frame: Frame, node: ast.expr, path: str, call: ast.Call | None) -> None:
        """A GPU may be chosen for all that follows, or for what stands in a block."""
        if path in CUDA_CHOOSERS and call is not None and call.args and isinstance(call.args[0], ast.Constant):
            self.number(frame, call, call.args[0].value, f"{path}(...)")

    def on_choice(self, frame: Frame, node: ast.IfExp, flag: Flag, then: Value, other: Value) -> None:
        """One of two values is taken."""
        if frame.interpreter.muted or frame.inlined:
            return
        texts = [_text(arm) for arm in (node.body, node.orelse)]
        for arm, text in zip((node.body, node.orelse), texts, strict=True):
            place = None if text is None or frame.comparing else parse(text)
            if text is not None and place is not None:
                self.number(frame, arm, place.index, text)
        # a switch beside the question is known to be on, and made to be turned off
        if flag.condition is not AVAILABLE or isinstance(node.test, ast.BoolOp) or None in texts:
            return
        there, otherwise = map(named_place, (then, other) if flag.positive else (other, then))
        if there is None or otherwise is None or otherwise.kind is not Kind.CPU:
            return
        if there.kind is Kind.ACCELERATOR and there.type == "cuda":
            self._selected[node] = Alternative(node, scope_of(frame))

    def on_device(self, frame: Frame, node: ast.AST, role: str, value: Value | None, call: Call | None) -> None:
        """A device is made, perhaps of what was selected."""
        inner = call.nodes[0] if call is not None and role == DEVICE and len(call.nodes) == 1 else None
        if call is not None and isinstance(inner, ast.IfExp) and inner in self._selected:
            self._selected[inner] = replace(self._selected[inner], whole=call.node)

    # -- the current accelerator ---------------------------------------------------------------------------------------

    def on_library_call(self, frame: Frame, call: Call, path: str) -> None:
        """The current accelerator is asked for, or the environment set by a call."""
        if path == CURRENT_ACCELERATOR and not _is_there(frame):
            self._current.setdefault(call.node, None)
        elif path in _SET:
            self._set(frame, call.node, call.argument(0, "key"))

    def on_device_use(self, frame: Frame, node: ast.AST, value: Value, read: bool) -> None:
        """A device is used as if there was one."""
        made = value.node if isinstance(value, DeviceValue) else None
        if not isinstance(made, ast.Call) or made not in self._current or _is_there(frame) or frame.interpreter.muted:
            return
        given = nodes.given(made)
        asked = any(isinstance(part, ast.Constant) and part.value is True for part in given)
        if asked and not read:
            # nothing happens to `x.to(None)`, and nothing is there that should
            return
        if self._current[made] is None:
            label = "`None` has no such attribute" if read else "used as a device here"
            self._current[made] = frame.info, Current(made, scope_of(frame), Step(node, label), read, asked)

    def on_function(self, frame: Frame, node: ast.Name, info: FunctionInfo) -> None:
        """The top level of the file names one of its functions, as it does to call it, or to have processes run it."""
        if frame.info is None and not frame.interpreter.muted:
            self._started[info].append(_is_there(frame))

    def _is_behind_a_check(self, info: FunctionInfo | None) -> bool:
        """Whether a function is named only at the top level, and only where an accelerator was found."""
        if info is None or info not in self._started:
            return False
        started = self._started[info]
        return all(started) and len(re.findall(rf"\b{info.name}\b", self._text)) == 1 + len(started)

    def on_condition(self, frame: Frame, node: ast.expr) -> None:
        """It is asked whether something is true, or ``None``."""
        if isinstance(node, ast.Compare) and isinstance(node.comparators[0], ast.Constant):
            node = node.left
        if isinstance(node, ast.NamedExpr):
            node = node.value
        if isinstance(node, ast.Call):
            self._asked.add(node)
        elif isinstance(node, ast.Name):
            value = frame.lookup(node.id)
            if isinstance(value, DeviceValue) and value.node is not None:
                self._asked.add(value.node)

    # -- the environment -----------------------------------------------------------------------------------------------

    def on_item(self, frame: Frame, target: ast.Subscript, base: Value, index: Value, value: Value) -> None:
        """``os.environ[key] = ...``."""
        if base == _ENVIRONMENT:
            self._set(frame, target, index)

    def _set(self, frame: Frame, node: ast.Subscript | ast.Call, key: Value | None) -> None:
        """A variable of the environment is set."""
        name = key.value if isinstance(key, Const) else None
        if name not in VARIABLES or _puts_back(frame.inside, str(name)):
            return
        first = frame.component(Initialization).first if frame.info is not None else None
        above = (known for known in frame.interpreter.tree.body if frame.info is not None or known.lineno < node.lineno)
        loads = (known for known in above if any(path.partition(".")[0] == "torch" for path in names.modules(known)))
        step = next((Step(known, "torch is imported here") for known in loads), None)
        frame.emit(Visible(node, scope_of(frame), str(name), frame.state.touched or first, step, self._spawns))


def _is_there(frame: Frame) -> bool:
    """Whether the code runs only where an accelerator was found, whichever it is."""
    return frame.state.accelerated or frame.state.affirmed(Topic.PRESENCE)


def _puts_back(inside: list[ast.AST], name: str) -> bool:
    """Whether the function sets a variable to what it found there: in between, it is meant for others to read."""
    pairs = [(to, node.value) for node in inside if isinstance(node, ast.Assign) for to in node.targets]
    found = {to.id for to, value in pairs if isinstance(to, ast.Name) and _reads(value, name)}
    return any(isinstance(value, ast.Name) and value.id in found and _reads(to, name) for to, value in pairs)


def _reads(node: ast.expr, name: str) -> bool:
    """Whether an expression is a variable of the environment: ``os.environ[name]``, ``os.getenv(name)``."""
    key = node.slice if isinstance(node, ast.Subscript) else None
    if isinstance(node, ast.Call) and node.args:
        key = node.args[0]
    return isinstance(key, ast.Constant) and key.value == name


def _text(node: ast.expr) -> str | None:
    """What a literal string says."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
