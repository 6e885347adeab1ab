"""More of the vocabulary: sites where a device is taken for what it is not."""

from __future__ import annotations

import ast

from devlint.immutable import immutable
from devlint.sites import Site, Step


@immutable(frozen=True, slots=True)
class DeviceTest(Site):
    """A comparison of a ``torch.device`` that has one outcome, whatever the device is, or that raises.

    ``subject`` is the operand that is proven to be a ``torch.device``, ``other`` what it is compared with.  ``problem``
    is one of "text" (with strings, or one of several), "membership" (a string is looked for in it), "identity"
    (``is``), or "index": a tensor's device, which has an index, with an accelerator named without one.
    """

    subject: ast.expr
    other: ast.expr
    operator: str
    problem: str


@immutable(frozen=True, slots=True)
class DeviceArgument(Site):
    """An argument where torch takes a device, or takes nothing, with which the call raises.

    ``role`` is what it is passed to: ".to", ".cuda", "device", "torch.device", "map_location", "autocast", ...
    ``problem`` is one of "name" (no device of torch is called so), "range" (the index is beyond what torch can count),
    "bool", "number", "none", "module" (such as ``torch.cuda``), "scope" (``torch.cuda.device(0)``), "index"
    (``x.get_device()``, which is -1 on the CPU), "object" (a ``torch.device`` where its type is taken), "legacy" (an
    accelerator for a constructor of CPU tensors), "position" (a device that has to be named), "unknown" (the method has
    no such parameter), "second" (the parameter there is another one), "cpu" (where only CUDA is taken) and "call"
    (``torch.cuda`` itself is called).
    """

    call: ast.Call
    role: str
    problem: str
    text: str = ""


@immutable(frozen=True, slots=True)
class Override(Site):
    """A module's own ``to``, ``cuda`` or ``cpu``, which does something ``besides`` what it inherits, at ``node``."""

    method: str
    besides: Step
