"""Sites of training on several devices: wrappers, process groups, optimizers."""

from __future__ import annotations

import ast

from devlint.device import UNKNOWN, Device
from devlint.immutable import immutable
from devlint.sites.base import Site, Step


@immutable(frozen=True, slots=True)
class Wrap(Site):
    """A module wrapped for several devices; ``beside`` names other wrappers used in the same function.

    ``ids`` counts the device ids, ``device`` is where the module is, ``group`` says whether a process group exists by
    then, ``fixed`` is the device index that every process of a group takes alike, ``moved_after`` a move of the
    wrapped module, and ``attached`` an attribute that is set on the wrapper.  ``beyond`` is where the number of the
    process, which is its device id here, is taken modulo the GPUs of a machine.  ``devices`` is how many devices a run
    had to wrap it for.
    """

    wrapper: str
    ids: int | None
    beside: tuple[str, ...] = ()
    device: Device = UNKNOWN
    group: bool | None = None
    fixed: Step | None = None
    moved_after: Step | None = None
    attached: Step | None = None
    beyond: Step | None = None
    devices: int | None = None


@immutable(frozen=True, slots=True)
class Unforwarded(Site):
    """An attribute is read from a wrapper for several devices which has none of this name, as its module may have.

    ``text`` is the wrapper as the code names it, ``made`` where it was made, and ``perhaps`` says that there is one on
    some paths only.  ``known`` says that the class of the module is, and names the attribute or has a base that may.
    """

    wrapper: str
    text: str
    made: Step
    perhaps: bool
    known: bool


@immutable(frozen=True, slots=True)
class Group(Site):
    """A process group is made in a file that chooses no device for its processes, or too late.

    ``backend`` is its name, empty where that is not known; ``named`` is where the same function names the device of a
    process, ``waits`` a collective that uses the current device.  ``script`` says that the processes start in this
    file, so that nobody else has chosen for them.  ``late`` is where the device is chosen after the collective.
    """

    backend: str
    named: ast.AST | None
    waits: Step | None
    script: bool
    late: Step | None = None


@immutable(frozen=True, slots=True)
class Ungrouped(Site):
    """A process asks ``function`` for its rank, or how many there are, before the same function makes the group."""

    function: str
    made: Step


@immutable(frozen=True, slots=True)
class Optimize(Site):
    """An optimizer, made at ``node`` with parameters on ``made``, stepping with parameters on ``stepped``.

    ``moved`` is the move of its module in between; ``eager`` says that it had state by then: because the class
    allocates it when made (Adagrad), or because it was loaded, at ``loaded``.  ``orphans`` counts the parameters that
    it holds and the module does not, since they were replaced.
    """

    optimizer: str
    made: Device
    stepped: Device
    moved: Step | None = None
    eager: bool = False
    loaded: Step | None = None
    orphans: int = 0
