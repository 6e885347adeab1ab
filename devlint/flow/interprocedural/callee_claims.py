"""What a function of another file makes on the default device, and brings together with what it is given.

It may be meant for tensors of the CPU, so that its own file says nothing of it. Here is a call that gives it others.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from devlint.device import Kind, Role
from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.values import Value, as_tensor
from devlint.flow.syntax import nodes
from devlint.immutable import replace
from devlint.sites.base import Operand, Step
from devlint.sites.placement import Forward, Operation, OperationKind


def tell(frame: Frame, call: Call, name: str, heard: Iterable[Operation | Forward]) -> None:
    """A function was entered and claimed something: the first that is about its arguments is told of at the call."""
    for site in heard:
        if isinstance(site, Operation) and site.kind is not OperationKind.ACCUMULATOR:
            # one that cares for devices is told of in its own file
            careful = bool(site.scope.module and site.scope.owner) or site.scope.device_aware
            found = None if careful else next(_meetings(frame, call, site), None)
            if found is not None:
                frame.emit(Operation(call.node, scope_of(frame), name, OperationKind.BROUGHT, found))
                return


def _meetings(frame: Frame, call: Call, site: Operation) -> Iterator[tuple[Operand, Operand]]:
    """What was made there, and the argument that it meets, as the caller knows both."""
    for stray in site.operands:
        made = stray.factory_node
        if stray.device.kind is not Kind.CPU or not stray.device.implied or made is None or stray.scattered:
            continue
        if nodes.holds(frame.interpreter.tree, made):
            continue
        for met in site.operands:
            given = _given(frame, call, met) if met.certain and not met.derived else None
            if given is not None and not (met.device.role is Role.INPUT and _is_for_the_host(frame)):
                node, value = given
                story = (*stray.story, Step(site.node, f"meets `{met.text}` in `{_owner(call)}` here"))
                yield (
                    replace(stray, node=call.node, story=story, factory_node=None),
                    replace(frame.operand(node, value), certain=True),
                )


def _given(frame: Frame, call: Call, met: Operand) -> tuple[ast.expr, Value] | None:
    """The argument of the call that is where an operand is."""
    if not met.device.known:
        return None
    same = (given for given in call.given() if frame.state.settled(as_tensor(given[1]).device) == met.device)
    return next(same, None)


def _is_for_the_host(frame: Frame) -> bool:
    """Whether what a function is given may well be on the CPU, module or not: samples of a data set, data of a test."""
    interpreter = frame.interpreter
    return interpreter.test or any(info.is_dataset for info in interpreter.index.classes.values())


def _owner(call: Call) -> str:
    return ast.unparse(call.node.func)
