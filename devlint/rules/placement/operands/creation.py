"""The call that created a tensor in the wrong place: whether it can be told a device, and what to advise."""

from __future__ import annotations

import ast

from devlint.device import Role
from devlint.rules.placement.operands.meetings import MODULE, Meeting, shown

_WITHOUT_DEVICE = frozenset({"from_numpy", "frombuffer", "from_file", "from_dlpack", "load"})

_DRAWN = "torch.distributions."
"""How the names begin of what draws where its parameters are."""


def takes_device(factory: str) -> bool:
    """Whether the torch function has a ``device=``, as constructors by type and readers of host memory have not."""
    name = factory.rpartition(".")[2]
    return name.islower() and name not in _WITHOUT_DEVICE and not factory.startswith(_DRAWN)


def placeable(meeting: Meeting) -> bool:
    """Whether ``device=`` can be added to the creation: nothing else in the call says where it creates."""
    return meeting.stray.role != MODULE and can_be_told(meeting.stray.factory, meeting.creation)


def can_be_told(factory: str, node: ast.AST | None) -> bool:
    """Whether ``device=`` can be added to a call of a torch function."""
    keywords = node.keywords if isinstance(node, ast.Call) else []
    tied = any(keyword.arg in (None, "device", "generator", "out") for keyword in keywords)
    return not tied and takes_device(factory)


def advice(meeting: Meeting, target: str) -> str:
    """What to do about the creation; ``target`` is the device expression to use, empty where none is at hand."""
    if not target and meeting.other.device.role is Role.PLACE:
        # what is there may have a name in another function only, and the module has one everywhere
        return "create it on the module's device, such as `next(self.parameters()).device`"
    if not target:
        return f"create it on the device of {shown(meeting.other.text)}, handed over as an argument if need be"
    if placeable(meeting):
        return f"create it there: `{meeting.stray.factory}(..., device={target})`"
    return f"move it there: `.to({target})`"
