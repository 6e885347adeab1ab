"""Events of the interpreter: what happens while a file is read, and the observers who hear of it.

An observer overrides the handlers of the events that it wants to hear.  Where something happens, the interpreter calls
the handler of all who :func:`heard` of it; what nobody hears costs one look into a dict.
Observers make sites or collect for :meth:`Component.sites`; none of them answers, or changes what the interpreter
knows.  Who hears of the same event hears of it in the order in which the interpreter's ``observers`` stand.
"""

from __future__ import annotations

import ast
from functools import cache
from typing import ClassVar

from devlint.device import Device
from devlint.flow.catalog.schema import Row
from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Component, Frame, Interpreter
from devlint.flow.domain.objects import Module
from devlint.flow.domain.state import State
from devlint.flow.domain.tensors import Tensor
from devlint.flow.domain.values import Flag, Value
from devlint.flow.program.symbols import FunctionInfo
from devlint.sites.base import Step
from devlint.sites.transfers import Transfer

Meeting = tuple[ast.AST, Value, str, Device]
"""A tensor in an operation: its node, its value, the parameter it is passed to, where it is."""
Pair = tuple[Meeting, Meeting]


class Observer(Component):
    """A detector: hears of what a file says when it is read as Python would run it, each definition on its own.

    With ``wants_inlined`` it hears, too, of what a function does for a caller, and with ``wants_quiet`` of what is only
    tried out, to find a fixpoint or to find something out; with both of everything.
    """

    wants_inlined: ClassVar[bool] = False
    wants_quiet: ClassVar[bool] = False

    def on_name(self, frame: Frame, node: ast.expr, path: str, call: ast.Call | None) -> None:
        """The code speaks of a name of a library, or calls it; or a string may be one where types are compared."""

    def on_import(self, frame: Frame, node: ast.ImportFrom) -> None:
        """Names of a module are imported, one by one."""

    def on_function(self, frame: Frame, node: ast.Name, info: FunctionInfo) -> None:
        """The code names one of its functions, to call it or to hand it on."""

    def on_attribute(self, frame: Frame, node: ast.Attribute, value: Value) -> None:
        """An attribute is read, which is no name of a library."""

    def on_binding(self, frame: Frame, target: ast.Name, value: Value) -> None:
        """A value is given a name."""

    def on_test(self, frame: Frame, node: ast.expr, value: Value) -> None:
        """It is asked whether a value is true."""

    def on_condition(self, frame: Frame, node: ast.expr) -> None:
        """What a test expresses is about to be found out."""

    def on_comparison(self, frame: Frame, node: ast.Compare, values: list[Value]) -> None:
        """Values are compared, each with the next."""

    def on_branch(self, frame: Frame, node: ast.If, before: State, then: State, other: State) -> None:
        """The two paths of a branch are about to meet again; ``before`` is the state in front of it."""

    def on_choice(self, frame: Frame, node: ast.IfExp, flag: Flag, then: Value, other: Value) -> None:
        """A conditional expression has two values; ``flag`` is its condition."""

    def on_row(self, frame: Frame, node: ast.Tuple | ast.List, items: list[tuple[ast.expr, Value]]) -> None:
        """Values stand side by side in a tuple, or in a list into which others are unpacked."""

    def on_subtraction(self, frame: Frame, node: ast.BinOp, left: Value, right: Value) -> None:
        """A value is subtracted from another."""

    def on_step_loop(self, frame: Frame, node: ast.For | ast.AsyncFor | ast.While) -> None:
        """A loop that runs steps itself has been read to its end; it is the innermost loop of the frame."""

    def on_item(self, frame: Frame, target: ast.Subscript, base: Value, index: Value, value: Value) -> None:
        """An item of ``base``, which is no tensor, is given a value."""

    def on_index(
        self, frame: Frame, node: ast.Subscript, tensor: Tensor, indexes: list[tuple[ast.expr, Value]]
    ) -> None:
        """Tensors select from ``tensor``, which ``node`` reads or writes to."""

    def on_store(self, frame: Frame, target: ast.Attribute, base: Value, value: Value, node: ast.AST) -> None:
        """An attribute of an object is given a value, which is as the object keeps it."""

    def on_data(self, frame: Frame, target: ast.Attribute, base: Value, value: Value) -> None:
        """``base.data`` is given a value: the numbers of a tensor, as a rule."""

    def on_put(self, frame: Frame, target: ast.expr, value: Value, node: ast.AST | None) -> None:
        """Something is put into a container that the code calls ``target``."""

    def on_arguments(self, frame: Frame, node: ast.Call) -> None:
        """The arguments of a call are about to be evaluated."""

    def on_call(self, frame: Frame, call: Call) -> None:
        """Something is about to be called."""

    def on_method(self, frame: Frame, call: Call, receiver: Value, node: ast.Attribute) -> None:
        """A method of ``receiver`` is called, or a function of a library that it is."""

    def on_library_call(self, frame: Frame, call: Call, path: str) -> None:
        """Something of a library is called; ``path`` is its name."""

    def on_unfollowed_call(self, frame: Frame, call: Call, path: str, row: Row | None) -> None:
        """Code is called that cannot be followed; ``path`` is its name, if it has one, ``row`` what is stated of it."""

    def on_module_call(self, frame: Frame, call: Call, module: Module, place: Device) -> None:
        """A module with parameters or buffers is called, which is at ``place``."""

    def on_stray_inputs(self, frame: Frame, inputs: list[tuple[ast.AST, Value, str]]) -> None:
        """Tensors go into a module, and surely are elsewhere."""

    def on_meet(self, frame: Frame, node: ast.AST, operator: str, met: list[Meeting], apart: list[Pair]) -> None:
        """Tensors meet in an operation; ``apart`` are those of them that are in different places."""

    def on_return(self, frame: Frame, node: ast.Return, value: Value) -> None:
        """A function returns a value."""

    def on_rounds(self, frame: Frame, node: ast.For | ast.AsyncFor, item: Value) -> None:
        """A loop is about to begin, each round of which gets such an item."""

    def on_creation(self, frame: Frame, call: Call) -> None:
        """A function or a method of torch makes a tensor of sizes, of numbers or of data."""

    def on_placed_creation(self, frame: Frame, call: Call, path: str, place: Device) -> None:
        """A function or a method of torch, or a type of tensors, makes one on the device that it is asked for."""

    def on_device(self, frame: Frame, node: ast.AST, role: str, value: Value | None, call: Call | None) -> None:
        """Something stands where a device is named; ``role`` says what for.

        The call is told if it is one of torch, which takes nothing but a device there.
        """

    def on_device_use(self, frame: Frame, node: ast.AST, value: Value, read: bool) -> None:
        """Something is used as a device, or, where it is ``read``, an attribute of a device."""

    def on_device_index(self, frame: Frame, node: ast.AST, index: Value, spelled: str) -> None:
        """A device is named by a number, as it is spelled in messages where the number is known."""

    def on_move(self, frame: Frame, transfer: Transfer, receiver: Value, call: Call) -> None:
        """Something is moved, or only asked to have another type; this is before it is anywhere else."""

    def on_relocation(self, frame: Frame, module: Module, place: Device, step: Step) -> None:
        """A module goes to another device."""

    def on_wait(self, frame: Frame, node: ast.AST, read: ast.expr, value: Value, spelled: str) -> None:
        """The host reads ``value``, which may be on an accelerator, and is about to wait for it."""


def heard(frame: Frame, event: str) -> list[Observer]:
    """Who hears of an event in a frame."""
    return frame.interpreter.audience[frame.inlined][event]


class Hearers(dict[str, list[Observer]]):
    """The observers of each event in an interpreter, found when it first happens."""

    def __init__(self, interpreter: Interpreter, quiet: bool, inlined: bool) -> None:
        super().__init__()
        self._interpreter, self._quiet, self._inlined = interpreter, quiet, inlined

    def __missing__(self, event: str) -> list[Observer]:
        kinds = _hearing(self._interpreter.observers, event, self._quiet, self._inlined)
        found = self[event] = [self._interpreter.component(kind) for kind in kinds]
        return found


@cache
def _hearing(kinds: tuple[type[Component], ...], event: str, quiet: bool, inlined: bool) -> list[type[Observer]]:
    """Those of some kinds of observers that handle an event and want to hear of it."""
    return [
        kind
        for kind in kinds
        if issubclass(kind, Observer)
        and getattr(kind, event) is not getattr(Observer, event)
        and (kind.wants_quiet or not quiet)
        and (kind.wants_inlined or not inlined)
    ]
