"""What all sites have: where they are, what surrounds them, the tensors in them, what an audit measured there."""

from __future__ import annotations

import ast
from dataclasses import field
from enum import Enum

from devlint.device import UNKNOWN, Device
from devlint.finding import Measurement
from devlint.immutable import immutable


class Act(Enum):
    """What is done to a value at a step of its story, as far as anybody decides by it."""

    CREATED = "created"
    MOVED = "moved"
    FETCHED = "copied to the host"
    OTHER = "other"


@immutable(frozen=True, slots=True)
class Step:
    """A place in a value's story, e.g. "created on the CPU here"; the label is for people, and decides nothing."""

    node: ast.AST
    label: str
    act: Act = Act.OTHER


@immutable(frozen=True, slots=True)
class Scope:
    """What surrounds a site.

    ``function`` and ``owner`` (its class) are names, empty at module level.  ``module`` says that the owner is an
    ``nn.Module`` and the code can run after the module was moved; ``loop`` is the innermost loop, ``step`` says that
    every round of it is, or is a part of, a training or evaluation step, ``sometimes`` that only some of its rounds
    come here (a setting that no round changes holds for all of them); ``called`` that a loop of steps, in this file or
    of a library, leads to the function in every round.  ``guarded`` says that the code only runs where an accelerator
    is available, ``by_name`` that only the name of a setting says so, ``use_gpu``, which can be set anywhere.
    ``handler`` says that it handles an exception, or that its own failure is handled, ``test`` that it belongs to a
    test.  ``required`` says that it is only reached after a call that raises without CUDA, ``counted`` that it was
    asked how many accelerators there are.  ``devices`` are the device expressions that the code has at hand, best
    first.  ``device_aware`` says that the function places other tensors by device, ``stateless`` that the owner is a
    module with neither parameters nor buffers, so that nobody need move it.  ``bound`` says that it uses what knows
    CUDA alone: a library, or NCCL; ``dedicated`` that its file or function imports what does nothing without an
    accelerator.
    """

    function: str = ""
    owner: str = ""
    module: bool = False
    loop: ast.AST | None = None
    step: bool = False
    guarded: bool = False
    by_name: bool = False
    handler: bool = False
    test: bool = False
    device_aware: bool = False
    stateless: bool = False
    devices: tuple[str, ...] = ()
    sometimes: bool = False
    called: bool = False
    required: bool = False
    counted: bool = False
    bound: bool = False
    dedicated: bool = False


@immutable(frozen=True, slots=True)
class Operand:
    """A tensor that takes part in something.

    ``many`` says whether it surely has (``True``) or surely lacks (``False``) dimensions: a 0-dim CPU tensor may meet
    an accelerator.  ``certain`` says that it is proven to be a tensor.  ``factory`` is the torch function that made
    it on the default device, in the same function and with no device asked for, ``blended`` are the other creations of
    what it was computed from: they have to move with it; ``scattered`` says that on other paths other functions made
    it.  ``attribute`` is the assignment of the plain attribute of a module through which it came.  ``role`` is the
    parameter it is passed to, where that matters.  ``derived`` says that it came out of a call that could not be
    followed, so that its device is only likely the one of what went in; ``near`` is that device, where it is no
    argument's.  ``grad`` is "parameter" or "leaf" for what collects gradients, "graph" for what may be computed from
    such; ``complex`` says that its numbers are, on some path.
    """

    node: ast.AST
    text: str
    device: Device = UNKNOWN
    many: bool | None = None
    certain: bool = False
    story: tuple[Step, ...] = ()
    factory: str = ""
    factory_node: ast.AST | None = None
    blended: tuple[tuple[str, ast.AST], ...] = ()
    scattered: bool = False
    attribute: Step | None = None
    role: str = ""
    derived: bool = False
    grad: str = ""
    near: Device = UNKNOWN
    complex: bool = False


@immutable(frozen=True, slots=True)
class Site:
    """A place where something happens to a device.

    ``measured`` is what an audit saw there, ``None`` where the site was inferred from the code; ``via`` names the file
    and line of the library that did it, where the code at ``node`` only called that.  ``observed`` tells where a run
    had what is in it, where the code was read with what a run has seen.
    """

    node: ast.AST
    scope: Scope
    measured: Measurement | None = field(default=None, kw_only=True)
    via: str = field(default="", kw_only=True)
    observed: tuple[Step, ...] = field(default=(), kw_only=True)

    @property
    def repeated(self) -> bool:
        """Whether it happens again and again: in a loop, or at every step of the run that was observed."""
        if self.measured is not None:
            return self.measured.each_step
        return self.scope.loop is not None or self.scope.called


@immutable(frozen=True, slots=True)
class Creation:
    """The call of a torch function that made a tensor on the default device, only for a move to take it elsewhere.

    ``generator`` says that the call draws with one: "argument" if the function's caller may hand one over, "else" for
    any other.  ``helper`` names the function of the file that made it, empty where the moving function did.  ``array``
    says that it is a function of NumPy, which made an array of numbers alone; ``like`` is the tensor whose shape and
    device it took, where it did that.
    """

    node: ast.Call
    function: str
    generator: str = ""
    helper: str = ""
    array: bool = False
    like: str = ""
    others: tuple[Creation, ...] = ()
