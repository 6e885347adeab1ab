"""How surely a tensor is not on the CPU, where only the CPU's will do, and the edit that fetches it."""

from __future__ import annotations

import ast
import re

from devlint.device import AN_ITEM, AVAILABLE, Device, Kind, LoopRound, Role
from devlint.finding import Edit, Severity, Span
from devlint.flow.catalog.concepts import NUMPY
from devlint.immutable import immutable
from devlint.rules.code.blocks import beside, builds_no_graph, function_at, way_to
from devlint.rules.code.edits import put_after, put_before
from devlint.sites.base import Operand
from devlint.sites.placement import HostRead
from devlint.source.syntax import walk
from devlint.source.tree import Source

_PLAIN = re.compile(rf"(?:{AN_ITEM})?\w+")
_PART = r"""\[["']"""
"""A part of something by its name."""
_ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)


@immutable(frozen=True, slots=True)
class Absence:
    """A tensor that is not on the CPU: how sure that is, and how a message says so.

    ``assumed`` is whether that rests on where a caller keeps it, or its module is, or on what it is near to.
    """

    severity: Severity
    place: str
    assumed: bool = True


def absence(site: HostRead, operand: Operand) -> Absence | None:
    """What is known of a tensor that should be on the CPU; ``None`` where it may well be there."""
    device = operand.device
    near = device if device.known else operand.near
    if site.scope.handler or not near.known or _settled_on_cpu(near):
        return None
    if not device.known:
        return Absence(Severity.WARNING, f"is probably on {_shown(near)}")
    verb = "can be" if not _chosen(device) and any(leaf.kind is Kind.CPU for leaf in device.leaves()) else "is"
    roles = {leaf.role for leaf in device.leaves()}
    if roles <= {None, Role.DEVICE}:
        # nothing but a tensor goes where lengths go, or has the method
        proven = operand.certain or site.kind == "lengths" or site.reader == NUMPY
        severity = Severity.ERROR if verb == "is" and proven else Severity.WARNING
        # of what is derived, what made it fails, or was dropped: of that another rule tells
        return None if operand.derived else Absence(severity, f"{verb} on {_shown(device)}", assumed=False)
    if Role.INPUT not in roles:
        return Absence(Severity.WARNING, f"{verb} wherever the module is")
    return _given(site, operand)


def fetched(source: Source, operand: Operand, receiver: bool) -> list[Edit]:
    """The edits that put ``.cpu()`` behind a tensor; none where its brackets cannot be told from others."""
    node = operand.node
    graph = operand.grad in ("graph", "") and _is_without_graph(source, node)
    fetch = ".detach().cpu()" if (operand.grad or operand.near.known) and not graph else ".cpu()"
    if isinstance(node, _ATOMS):
        return [put_after(source, node, fetch)]
    if not receiver:
        return [put_before(source, node, "("), put_after(source, node, f"){fetch}")]
    span = source.span(node)
    before, after = beside(source, span)
    behind = span.end_column + 1
    bracketed = before.endswith("(") and after.startswith(")")
    return [Edit(Span(span.end_row, behind, span.end_row, behind), fetch)] if bracketed else []


def _is_without_graph(source: Source, node: ast.AST) -> bool:
    """Whether what a place reads was computed where no graph is built: ``with torch.no_grad():``."""
    function = function_at(source, node)
    if any(map(builds_no_graph, getattr(function, "decorator_list", ()))):
        return True
    places = [node]
    if isinstance(node, ast.Name):
        named = (part for part in walk(function or source.tree) if isinstance(part, ast.Name) and part.id == node.id)
        places = [part for part in named if isinstance(part.ctx, ast.Store)]
    ways = [[parent for parent, _ in way_to(source, place)] for place in places]
    withs = [[item for parent in way if isinstance(parent, ast.With) for item in parent.items] for way in ways]
    return bool(ways) and all(any(builds_no_graph(item.context_expr) for item in items) for items in withs)


def _given(site: HostRead, operand: Operand) -> Absence | None:
    """An argument's device, which is the caller's choice: a bug only where nobody would keep it on the CPU."""
    device = operand.device
    text = next(leaf.text for leaf in device.leaves() if leaf.role is Role.INPUT)
    place = f"is where the caller keeps `{text}`"
    aware = site.scope.module or site.scope.device_aware
    if site.kind == "lengths":
        # an argument is the lengths themselves, more often than not; not so what the sequences are computed from
        same = site.beside.same(device) is True and site.computed
        # and a part of one need not be where its other parts are
        whole = not isinstance(operand.node, (ast.Subscript, ast.Attribute))
        if same and whole:
            return Absence(Severity.WARNING if aware else Severity.INFO, place)
        # what a network gets is moved to it together, more often than not
        return Absence(Severity.INFO, place) if site.scope.module and whole and operand.certain else None
    if not operand.certain or site.scope.test:
        return None
    # what hangs on an argument, as a batch's label does, need not be where the argument's other parts are
    if any(leaf.kind is Kind.CPU for leaf in device.leaves()) or not (operand.derived or _PLAIN.fullmatch(text)):
        return None
    if operand.derived:
        # calls of others, too, return what is on the CPU; less often what is computed with from then on
        followed = site.computed and not re.search(_PART, text)
        return Absence(Severity.INFO, "is probably where the arguments are") if followed else None
    # what a function gives to NumPy as it comes may well be on the CPU
    severe = site.reader == NUMPY and (site.scope.module or (aware and site.computed))
    return Absence(Severity.WARNING if severe else Severity.INFO, place)


def _chosen(device: Device) -> bool:
    """Whether a choice is one that the code gave a name, or made by what is available: one device."""
    return device.kind is Kind.CHOICE and (bool(device.text) or device.guard is AVAILABLE) and device.switched


def _settled_on_cpu(device: Device) -> bool:
    """Whether some path puts it on the CPU on purpose, under a condition of which nothing is known."""
    if device.kind is Kind.CPU:
        return True
    if device.then is None or device.other is None or _chosen(device):
        return False
    sides = (not side.implied and _settled_on_cpu(side) for side in (device.then, device.other))
    # of the rounds of a loop, one comes after the other
    return all(sides) if isinstance(device.guard, LoopRound) else any(sides)


def _shown(device: Device) -> str:
    if device.switched and not device.text:
        device = next((leaf for leaf in device.leaves() if leaf.kind is not Kind.CPU), device)
    return str(device)
