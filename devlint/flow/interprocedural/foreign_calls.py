"""Calls across files: what a function of another file returns, and what it does to what it is given."""

from __future__ import annotations

from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame, Interpreter
from devlint.flow.core.registry import MODELS
from devlint.flow.domain.export import arrived, scrubbed
from devlint.flow.domain.heap import STORY
from devlint.flow.domain.values import (
    Batches,
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
from devlint.flow.interprocedural import callee_claims
from devlint.flow.interprocedural.probing import Overheard
from devlint.flow.models.libraries import unknown
from devlint.flow.transfer.device_queue import Queue
from devlint.flow.transfer.escapes import Escapes
from devlint.flow.transfer.placement import derive
from devlint.sites.base import Step

_TOUCHED = (Batches, Instance, Loader, Module, Sequence, Tensor)
"""What a function may change although nobody takes what it returns."""


def enter(there: Interpreter, frame: Frame, function: Function, call: Call) -> Value:
    """The result of calling a function that another file defines."""
    here = frame.interpreter
    info = function.info
    here.component(Queue).unseen(frame, call.node)
    idle = call.node in frame.discarded and not any(isinstance(value, _TOUCHED) for value in call.values())
    if idle or not there.is_worth(info) or there.refuses(frame, info):
        here.component(Escapes).data(call.values())
        path = f".{info.name}"
        return (MODELS.model(path) or unknown.result)(frame, call, path)
    for value in call.values():
        if isinstance(value, Stateful):
            here.component(Escapes).sampler(value)
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
        story = STORY.of(heap, result.oid)
        if story is not None and (result.oid, STORY) not in before:
            STORY.put(heap, result.oid, (step, *story))
    return derive(frame, call) if isinstance(result, Unknown) else result


def _run(there: Interpreter, frame: Frame, function: Function, call: Call) -> Value:
    """What the function returns; what it does to its arguments is told of where the file at hand calls it."""
    here = frame.interpreter
    listens = not here.muted and not frame.silent
    before = here.component(Overheard).begin(there) if listens else None
    with here.quiet():
        result = there.run_call(frame, function, call)
    if before is not None:
        callee_claims.tell(frame, call, function.info.name, here.component(Overheard).end(before))
    return result
