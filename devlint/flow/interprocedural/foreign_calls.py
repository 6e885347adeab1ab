"""Calls across files: what a function of another file returns, and what it does to what it is given."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from devlint.device import Kind, Role
from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame, Interpreter
from devlint.flow.core.registry import MODELS
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.export import arrived, scrubbed
from devlint.flow.domain.heap import ORIGIN
from devlint.flow.domain.objects import Function, Instance, Module, Stateful
from devlint.flow.domain.provenance import Origin
from devlint.flow.domain.tensors import Batches, Loader, Tensor, as_tensor
from devlint.flow.domain.values import Sequence, Unknown, Value
from devlint.flow.interprocedural.call_contexts import CallContexts
from devlint.flow.models.libraries import unknown
from devlint.flow.syntax import nodes
from devlint.flow.transfer import havoc
from devlint.flow.transfer.device_queue import DeviceQueue
from devlint.flow.transfer.escapes import Escapes
from devlint.flow.transfer.placement import derive
from devlint.immutable import replace
from devlint.sites.base import Operand, Step
from devlint.sites.placement import COPYING, Forward, Hint, HintKind, Operation, OperationKind

_TOUCHED = (Batches, Instance, Loader, Module, Sequence, Tensor)
"""What a function may change although nobody takes what it returns."""


def enter(there: Interpreter, frame: Frame, function: Function, call: Call) -> Value:
    """The result of calling a function that another file defines."""
    here = frame.interpreter
    info = function.info
    here.component(DeviceQueue).unseen(frame, call.node)
    idle = call.node in frame.discarded and not any(isinstance(value, _TOUCHED) for value in call.values())
    unread = there.refuses(frame, info)
    if idle or unread or not there.is_worth(info):
        here.component(Escapes).data(call.values())
        if unread:
            havoc.handed(frame, call)
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
        origin = ORIGIN.of(heap, result.oid)
        if origin is not None and (result.oid, ORIGIN) not in before:
            ORIGIN.put(heap, result.oid, Origin((step, *origin.story)))
    return derive(frame, call) if isinstance(result, Unknown) else result


def _run(there: Interpreter, frame: Frame, function: Function, call: Call) -> Value:
    """What the function returns; what it does to its arguments is told of where the file at hand calls it."""
    here = frame.interpreter
    if here.muted or frame.silent:
        with here.quiet():
            return there.run_call(frame, function, call)
    with here.component(CallContexts).listen(there) as heard, here.quiet():
        result = there.run_call(frame, function, call)
    _tell(frame, call, function.info.name, heard)
    return result


def _tell(frame: Frame, call: Call, name: str, heard: Iterable[Operation | Forward | Hint]) -> None:
    """A function was entered and claimed something: the first that is about its arguments is told of at the call."""
    for site in heard:
        if isinstance(site, Hint) and site.kind is HintKind.COLLECTIVE:
            given = next((node for node, value in call.given() if _made_by(value, site.stray)), None)
            if given is not None:
                stray = replace(site.stray, node=given, text=frame.interpreter.text(given))
                frame.emit(replace(site, node=call.node, scope=scope_of(frame), stray=stray))
                return
        if isinstance(site, Operation) and site.kind not in COPYING:
            # one that cares for devices is told of in its own file
            careful = bool(site.scope.module and site.scope.owner) or site.scope.device_aware
            found = None if careful else next(_meetings(frame, call, site), None)
            if found is not None:
                frame.emit(Operation(call.node, scope_of(frame), name, OperationKind.BROUGHT, found))
                return


def _made_by(value: Value, stray: Operand) -> bool:
    """Whether an argument is what a claim is about, by the call that made it."""
    return isinstance(value, Tensor) and value.origin.node is not None and value.origin.node is stray.factory_node


def _meetings(frame: Frame, call: Call, site: Operation) -> Iterator[tuple[Operand, Operand]]:
    """What was made there, and the argument that it meets, as the caller knows both."""
    for stray in site.operands:
        made = stray.factory_node
        if stray.device.kind is not Kind.CPU or not stray.device.implied or made is None or stray.scattered:
            continue
        if nodes.holds(frame.interpreter.tree, made):
            continue
        for met in site.operands:
            given = _given(frame, call, met) if met.certain and not met.derived and met.device.known else None
            if given is not None and not (met.device.role is Role.INPUT and _is_for_the_host(frame)):
                node, value = given
                story = (*stray.story, Step(site.node, f"meets `{met.text}` in `{ast.unparse(call.node.func)}` here"))
                yield (
                    replace(stray, node=call.node, story=story, factory_node=None),
                    replace(frame.operand(node, value), certain=True),
                )


def _given(frame: Frame, call: Call, met: Operand) -> tuple[ast.expr, Value] | None:
    """The argument of the call that is where an operand is."""
    same = (given for given in call.given() if frame.state.settled(as_tensor(given[1]).device) == met.device)
    return next(same, None)


def _is_for_the_host(frame: Frame) -> bool:
    """Whether what a function is given may well be on the CPU, module or not: samples of a data set, data of a test."""
    interpreter = frame.interpreter
    return interpreter.test or any(info.is_dataset for info in interpreter.index.classes.values())
