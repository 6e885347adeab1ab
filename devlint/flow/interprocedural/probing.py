"""Modules of the project that hold tensors and no layer: whether what goes in meets the tensors at all.

A layer meets its input.  A buffer may be a number, which may meet any device, or be there for another method.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from devlint import device
from devlint.device import Role
from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Component, Frame, Interpreter
from devlint.flow.domain.values import Module, Tensor, Value
from devlint.flow.program.symbols import ClassInfo
from devlint.sites.base import Site
from devlint.sites.placement import Forward, Operation


@dataclass(slots=True)
class Listening:
    """What somebody had heard when somebody else began to listen."""

    heard: list[Operation | Forward] | None
    interpreter: Interpreter | None
    level: int


class Overheard(Component):
    """What muted code claims, for whoever listens."""

    shared = True

    def __init__(self, interpreter: Interpreter) -> None:
        self._heard: list[Operation | Forward] | None = None
        self._interpreter: Interpreter | None = None
        self._level = 0

    def claim(self, site: Site, frame: Frame) -> None:
        """A claim is made in a frame."""
        if self._heard is None or not isinstance(site, (Operation, Forward)):
            return
        interpreter = frame.interpreter
        if self._interpreter is None or (
            interpreter is self._interpreter and interpreter.muted == self._level and not frame.silent
        ):
            self._heard.append(site)

    def begin(self, interpreter: Interpreter | None = None) -> Listening:
        """Listen, perhaps only to what one file says of itself, and not where it merely tries something out.

        What was listened to before is returned, and goes on with :meth:`end`.
        """
        before = Listening(self._heard, self._interpreter, self._level)
        self._heard, self._interpreter, self._level = (
            [],
            interpreter,
            interpreter.muted if interpreter is not None else 0,
        )
        return before

    def end(self, before: Listening) -> list[Operation | Forward]:
        """What was claimed since :meth:`begin`, which had returned ``before``."""
        heard = self._heard or []
        self._heard, self._interpreter, self._level = before.heard, before.interpreter, before.level
        return heard


def meet(frame: Frame, call: Call, module: Module, strays: Iterable[Value]) -> bool:
    """Whether ``forward`` surely brings one of the arguments together with a tensor, not a number, of the module.

    It is entered with the arguments on the CPU, and the module wherever its caller puts it.
    """
    info = module.cls
    if info is None:
        return False
    probing = call.probing({id(value): Tensor(device.CPU, many=True) for value in strays})
    return any(_proves(site, info) for site in frame.interpreter.overhear(frame, info, probing))


def _proves(site: Operation | Forward, info: ClassInfo) -> bool:
    if isinstance(site, Forward):
        return site.device.role is Role.PLACE
    own = [operand for operand in site.operands if operand.device.symbol == info.place]
    # an index may be on the CPU, whatever it is an index of
    return site.kind != "index" and any(operand.many is True for operand in own)
