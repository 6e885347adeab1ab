"""More of the vocabulary of :mod:`devlint.sites`: values that are handed to somebody, or are placed by somebody.

The sites here are those of rules about one value and who takes it; what is said of sites there holds here, too.
"""

from __future__ import annotations

from devlint.device import UNKNOWN, Device
from devlint.immutable import immutable
from devlint.sites import Operand, Site, Step


@immutable(frozen=True, slots=True)
class HostRead(Site):
    """Tensors handed to something that takes none but the CPU's, and which may well be elsewhere.

    ``reader`` is what takes them, by its canonical name: ``numpy.asarray``, ``torch.Tensor.numpy``.  ``kind`` is
    "array" where it makes an array of them, "lengths" where it wants to be told the lengths of sequences, "one kind"
    where it makes an array of one that was copied to the host from one kind of accelerator, and only then.
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
    own device; ``by`` is where that was asked for.  ``part`` says that it is no module, but a batch, or a new tensor.
    """

    spelled: str
    value: Operand
    target: Device
    manager: str
    by: Step
    part: bool = False


@immutable(frozen=True, slots=True)
class Selection(Site):
    """A device that is chosen and given a name which nobody reads, in code that places nothing in any other way.

    ``works`` is where that code trains, or loads its batches; ``shown`` where the name is printed, and no more.
    """

    name: str
    device: Device
    works: Step
    shown: Step | None = None
