"""Sites of moves and copies between host and device."""

from __future__ import annotations

import ast

from devlint.device import Device
from devlint.immutable import immutable
from devlint.sites.base import Creation, Operand, Site, Step


@immutable(frozen=True, slots=True)
class Transfer(Site):
    """A call that puts a tensor or a module somewhere: ``.to``, ``.cuda``, ``.cpu``, ``.type_as``, ``.type(x.type())``.

    ``kind`` is "tensor", "module" or empty where the receiver is not known; ``target`` is where it goes (``None``: the
    call asks for no device).  ``plain`` says that nothing but a device is asked for; ``discarded`` that nobody takes
    the result; ``foreign`` that the receiver is known to be neither.  ``pinned`` says whether the host's side is pinned
    memory, ``pinned_by`` where that was asked for.  ``invariant`` says that every round of the loop copies the same
    unchanged tensor; ``unwaited`` is where the result of an asynchronous copy to the host is read although nothing
    has waited for it.  ``creation`` is the call that made the tensor, where nothing else wants it on the CPU; ``kept``
    is where an object that is no module keeps it, of which each call of this method copies it again.  ``empty`` says
    that the receiver is a module without any part, of which the move does nothing.
    """

    spelled: str
    kind: str
    value: Operand
    target: Device | None
    target_node: ast.AST | None = None
    plain: bool = True
    discarded: bool = False
    non_blocking: bool = False
    foreign: bool = False
    pinned: bool | None = None
    pinned_by: Step | None = None
    invariant: bool = False
    unwaited: Step | None = None
    creation: Creation | None = None
    kept: Step | None = None
    empty: bool = False


@immutable(frozen=True, slots=True)
class Uncalled(Site):
    """A method that moves ``value``, a tensor, stands where the moved tensor is meant: ``return x.cuda``."""

    spelled: str
    value: Operand


@immutable(frozen=True, slots=True)
class IndexCopy(Site):
    """An index made on the CPU for a tensor elsewhere, to where torch copies it: ``node`` of ``x[torch.arange(n), i]``.

    ``value`` is the tensor that is indexed, ``creation`` the call that makes the index, for nothing else.
    """

    value: Operand
    creation: Creation


@immutable(frozen=True, slots=True)
class ArrayCopy(Site):
    """A call of ``function`` which copies an array of NumPy to ``target``, made of numbers alone by ``creation``."""

    function: str
    target: Device
    creation: Creation


@immutable(frozen=True, slots=True)
class Upload(Site):
    """A call of ``function`` which makes the same tensor of literals on ``target`` in every step."""

    function: str
    target: Device
