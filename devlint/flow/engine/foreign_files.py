"""The machines of other files: they run in silence what the file at hand calls there, and know what it means."""

from __future__ import annotations

import ast

from devlint.flow.core.frame import Call, Frame
from devlint.flow.domain.export import arrived, scrubbed
from devlint.flow.domain.state import STORY, State
from devlint.flow.domain.values import (
    UNKNOWN,
    Batches,
    Class,
    Function,
    Instance,
    Loader,
    Module,
    Sequence,
    Stateful,
    Tensor,
    Unknown,
    Value,
)
from devlint.flow.engine.engine import Machine
from devlint.flow.evaluation import statements
from devlint.flow.interprocedural import callee_claims
from devlint.flow.interprocedural.guarded_callers import Confined
from devlint.flow.interprocedural.imports import Family, Imports
from devlint.flow.models.data.datasets import Samples
from devlint.flow.models.nn.modules import stranger
from devlint.flow.models.nn.process_groups import Groups
from devlint.flow.observers.placement.unregistered_modules import Submodules
from devlint.flow.observers.placement.unregistered_tensors import Attributes
from devlint.flow.observers.portability.gpu_selection import Choosing
from devlint.flow.observers.portability.unused_devices import Selections
from devlint.flow.program.project import File, Project
from devlint.flow.program.symbols import FunctionInfo
from devlint.flow.transfer.placement import derive
from devlint.sites.base import Step

_TOUCHED = (Batches, Instance, Loader, Module, Sequence, Tensor)
"""What a function may change although nobody takes what it returns."""
_DEEPEST_CALL = 3
_LONGEST_ENTERED = 60
_CALLS_PER_FUNCTION = 4
_MOST_LINES = 200
"""Beyond so many lines, what binds a name at the top level is not worth a run."""


class Guest(Machine):
    """Another file, of which only what is asked for is interpreted, and which says nothing itself.

    What a loader, a queue of work or an optimizer knows belongs to the file that is checked, wherever it happens.
    """

    def __init__(self, host: Machine, file: File, project: Project, family: Family) -> None:
        index = file.index
        self._adopt(index, file.tree, file.text, test=False)
        self.muted = 1
        self.finished = True
        self.loaders, self.queue, self.optimizers = host.loaders, host.queue, host.optimizers
        self.callers, self.steps = host.callers, host.steps
        self.overheard, self.confined = host.overheard, Confined(file.tree)
        self.samples, self.groups, self.choosing = Samples(""), Groups(""), Choosing("")
        self.attributes, self.submodules = Attributes(), Submodules(watching=False)
        self.selections = Selections(index, "")
        self.imports = Imports(self, file.filename, project, family)
        self.profiled = frozenset[str]()
        self._file = file
        self._known: dict[str, Value | None] = {}

    def is_worth(self, info: FunctionInfo) -> bool:
        """Whether a function can say anything of where something is."""
        return self._file.index.says_something(info)

    def exceeds(self, info: FunctionInfo, depth: int) -> bool:
        """Whether a function is too long, called too often, or too deep down; other files cost more than one's own."""
        long = (info.node.end_lineno or 0) - info.node.lineno > _LONGEST_ENTERED
        return depth > _DEEPEST_CALL or long or self.callers.exhausted(info, _CALLS_PER_FUNCTION)

    def global_value(self, name: str) -> Value | None:
        """What a name of the top level holds, found out when it is asked for."""
        if name not in self._known:
            # whoever asks again on the way goes round in a circle
            self._known[name] = UNKNOWN
            self._known[name] = self._run(name)
        return self._known[name]

    def _run(self, name: str) -> Value | None:
        function, cls = self._file.function(name), self._file.class_(name)
        if function is not None or cls is not None:
            return Function(function) if function is not None else Class(cls) if cls is not None else None
        found = self._file.outline.statements(name)
        if not found:
            return None
        lines = sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in found if not _defines(node))
        if name in self.index.rebound or lines > _MOST_LINES:
            return UNKNOWN
        frame = Frame(self, State({}), inlined=True)
        statements.run_body(frame, found)
        return frame.state.env.get(name, UNKNOWN)


def _defines(node: ast.stmt) -> bool:
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))


def enter(there: Machine, frame: Frame, function: Function, call: Call) -> Value:
    """The result of calling a function that another file defines."""
    here = frame.machine
    info = function.info
    here.queue.unseen(frame, call.node)
    idle = call.node in frame.discarded and not any(isinstance(value, _TOUCHED) for value in call.values())
    if idle or not there.is_worth(info) or there.refuses(frame, info):
        here.loaders.escape(call.values())
        return stranger(frame, call, f".{info.name}")
    for value in call.values():
        if isinstance(value, Stateful):
            here.loaders.sharing.leave(value)
    before = frame.state.heap
    result = _run(there, frame, function, call)
    if here.index.label:
        return result
    heap = frame.state.heap
    for key, held in list(heap.items()):
        if isinstance(held, Value) and before.get(key) is not held:
            heap[key] = scrubbed(held)
    step = Step(call.node, f"`{info.name}` returns it here")
    result = arrived(result, call.values(), step)
    if isinstance(result, Module):
        story = heap.get((result.oid, STORY))
        if isinstance(story, tuple) and (result.oid, STORY) not in before:
            heap[(result.oid, STORY)] = (step, *story)
    return derive(frame, call) if isinstance(result, Unknown) else result


def _run(there: Machine, frame: Frame, function: Function, call: Call) -> Value:
    """What the function returns; what it does to its arguments is told of where the file at hand calls it."""
    here = frame.machine
    listens = not here.muted and not frame.silent
    before = here.overheard.begin(there) if listens else None
    here.muted += 1
    result = there.run_call(frame, function, call)
    here.muted -= 1
    if before is not None:
        callee_claims.tell(frame, call, function.info.name, here.overheard.end(before))
    return result
