"""Sites where tensors and modules have to be on one device, or are placed by somebody else."""

from __future__ import annotations

import ast
import enum

from devlint.device import UNKNOWN, Device
from devlint.immutable import immutable
from devlint.sites.base import Operand, Site, Step


@immutable(frozen=True, slots=True)
class Forward(Site):
    """A call of a module with tensors."""

    module: str
    device: Device
    story: tuple[Step, ...]
    inputs: tuple[Operand, ...]


class OperationKind(enum.Enum):
    """In which way an operation needs its operands on one device."""

    OPERANDS = "operands"
    LOSS_TARGET = "loss target"
    INDEX = "index"
    ASSIGNMENT = "assignment"
    """An assignment by a tensor index."""
    ACCUMULATOR = "accumulator"
    """A write into a part, which copies between devices without raising."""
    INDEXED = "index of a write"
    """A write through an index, the second, which torch copies to the first without raising."""
    GENERATOR = "generator"
    """Numbers are drawn with the first where the second is."""
    BROUGHT = "brought"
    """A function of another file made the first, and brings it together with the second, which it is given."""


COPYING = frozenset({OperationKind.ACCUMULATOR, OperationKind.INDEXED})
"""The kinds of operations that copy between devices, and raise nothing."""


@immutable(frozen=True, slots=True)
class Operation(Site):
    """An operation that needs its operands on one device, or makes a copy where they are not.

    ``sent`` says that the result is moved, at once if it is new, to where no operand is known to be.
    """

    operator: str
    kind: OperationKind
    operands: tuple[Operand, ...]
    sent: bool = False


class HintKind(enum.Enum):
    """What speaks against the place of a tensor, where no operation fails yet."""

    ALTERNATIVE = enum.auto()
    """On another path its place is taken by a tensor that is elsewhere."""
    COLLECTIVE = enum.auto()
    """It goes as it is into a collective, which NCCL carries out between accelerators only."""
    TOGETHER = enum.auto()
    """Both go into one call that cannot be followed."""
    ROW = enum.auto()
    """Both are kept in one row of a list."""
    SHAPED = enum.auto()
    """It was made in the shape of the other."""
    PARTED = enum.auto()
    """A branch leaves it and moves the other, another branch does it the other way round."""
    HALF = enum.auto()
    """It takes, as it is, the place of what is moved on another path; ``beside`` has the name of both for its text."""
    REBUILT = enum.auto()
    """It is kept for the device of the other, where what was kept before was not."""
    SIBLING = enum.auto()
    """It is kept beside several that the same function makes on one device, the other among them."""
    RETURNED = enum.auto()
    """A module makes it in the size of the other, and returns it as it is."""
    REPLACED = enum.auto()
    """It takes the place of the numbers of the other, which is there from then on."""
    UNPLACED = enum.auto()
    """Nobody placed it, and it is an input of a model that was."""
    UNMOVED = enum.auto()
    """Nobody moved it, a network, and its inputs were put on a device."""


@immutable(frozen=True, slots=True)
class Hint(Site):
    """A tensor that is probably in the wrong place, ``stray``, and what shows where it should be."""

    kind: HintKind
    stray: Operand
    beside: Operand


@immutable(frozen=True, slots=True)
class Attribute(Site):
    """A tensor or a module kept in a plain attribute of a module, which ``Module.to()`` does not move.

    ``kind`` is "tensor", "distribution" or "module", ``container`` the type that holds it ("list", "tuple", "dict"),
    empty where it stands alone.  ``uses`` are the places where it meets the module's inputs or is moved to them;
    ``kept`` says that some use assigns the moved tensor back to the attribute.  ``registered`` says that its
    parameters are known to the module, or to an optimizer, in some other way; ``beside`` is where the module is.
    ``open``: unknown bases; ``follows`` says of such a class that it does as modules do: ``__init__`` calls that of
    the bases, and a method puts the attribute where a tensor is that it is given.  ``copies`` are the calls that copy
    it to where the inputs are, each with the name of the method.  ``fetched`` is where a method makes a number of it,
    for which it would wait if it was on an accelerator; ``stopped`` is a move of the class's own that does not call
    that of the bases, and so moves nothing that is registered.  ``refused`` says that a submodule has the name already,
    in whose place a module lets nothing be put but another one, or None; ``later`` that another method than
    ``__init__`` makes it, and that one of the class moves it.
    """

    owner: str
    name: str
    value: Operand
    uses: tuple[Step, ...]
    moved: bool = False
    kept: bool = False
    kind: str = "tensor"
    container: str = ""
    registered: bool = False
    beside: Device = UNKNOWN
    open: bool = False
    follows: bool = False
    copies: tuple[tuple[ast.AST, str], ...] = ()
    fetched: Step | None = None
    stopped: Step | None = None
    refused: bool = False
    later: bool = False


@immutable(frozen=True, slots=True)
class HostRead(Site):
    """Tensors handed to something that takes none but the CPU's, and which may well be elsewhere.

    ``reader`` is what takes them, by its canonical name: ``numpy.asarray``, ``torch.Tensor.numpy``.  ``kind`` is
    "array" where it makes an array of them, "lengths" where it wants to be told the lengths of sequences, "one kind"
    where it makes an array of one that was copied to the host from one kind of accelerator, and only then, "like"
    where nothing but the code around says where it is, which copies the like of it to the host first, "graph" where
    it is only known that it was taken out of its graph.
    ``several`` says that they are items of a list which is handed over as a whole.  ``computed`` says that the code has
    computed them, and not only been given them; ``beside`` is where the sequences are of which these are the lengths.
    """

    reader: str
    kind: str
    values: tuple[Operand, ...]
    several: bool = False
    computed: bool = False
    beside: Device = UNKNOWN


@immutable(frozen=True, slots=True)
class LoadedState(Site):
    """The state of a generator is set to ``node``, which ``loaded`` put on ``device`` with the rest of a file.

    ``function`` is what sets it, by its canonical name.
    """

    function: str
    device: Device
    loaded: Step


@immutable(frozen=True, slots=True)
class LeafMove(Site):
    """A move of a tensor that collects gradients, whose result takes its place: it is no leaf any more.

    ``spelled`` is the method, ``target`` where it goes (``None``: to another dtype).  ``gradient`` is where the
    gradient of the result is wanted, ``attribute`` says that the result is kept in an attribute; ``named`` that the
    leaf had a name before, which the result takes over.
    """

    spelled: str
    value: Operand
    target: Device | None
    gradient: Step | None = None
    attribute: bool = False
    named: bool = False


@immutable(frozen=True, slots=True)
class ManagedMove(Site):
    """A move of something that a library places by itself.

    ``manager`` says what places it: "device map", "mapped pipeline", "8-bit", "prepared" (by accelerate), "offloaded",
    "sequentially offloaded", "offloaded later", "Lightning", or "Lightning's own" where the move goes to the trainer's
    own device, or a name from a row of the catalog; ``by`` is where that was asked for.  ``part`` says that it is no
    module, but a batch, or a new tensor.
    """

    spelled: str
    value: Operand
    target: Device
    manager: str
    by: Step
    part: bool = False


@immutable(frozen=True, slots=True)
class UnusedDevice(Site):
    """A device that is chosen and given a name which nobody reads, in code that places nothing in any other way.

    ``works`` is where that code trains, or loads its batches; ``shown`` where the name is printed, and no more.
    """

    name: str
    device: Device
    works: Step
    shown: Step | None = None
