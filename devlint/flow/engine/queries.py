"""Watching names: what the interpreter knows of them at one place of the code, and the story behind it."""

from __future__ import annotations

import ast
from collections.abc import Collection

from devlint import device
from devlint.device import AVAILABLE, Device, Kind, Role
from devlint.flow.catalog.libraries import Catalog
from devlint.flow.core.interpreter import Frame
from devlint.flow.domain.heap import DEVICE, ORIGIN
from devlint.flow.domain.objects import Module, Stateful
from devlint.flow.domain.provenance import NO_ORIGIN
from devlint.flow.domain.tensors import Batches, DeviceValue, Loader, Tensor, placement
from devlint.flow.domain.values import Mapping, Opaque, Sequence, Value
from devlint.flow.engine.engine import Engine
from devlint.flow.engine.foreign_files import ForeignFile
from devlint.flow.models.data.loaders import Loaders
from devlint.flow.program.observations import Observed, SeenSymbol, key_of
from devlint.flow.program.project import Project
from devlint.immutable import immutable, replace
from devlint.sites.base import Step
from devlint.sites.observed import Observations

_MOST_STEPS = 4
"""A container tells the stories of so many of its parts."""

Watched = ast.Name | ast.Attribute | ast.arg


@immutable(frozen=True, slots=True)
class Known:
    """What is known of a name: what it is ("tensor", "module", ...; empty if unknown), where, and how it came there.

    ``says`` is the sentence's end that says where it is, or ``may be``; ``caller`` is the function that passes it, if
    this is what only that call says.  ``observed`` says in a sentence where a run had it.
    """

    kind: str = ""
    device: Device = device.UNKNOWN
    says: str = ""
    certain: bool = True
    story: tuple[Step, ...] = ()
    caller: str = ""
    observed: str = ""

    @property
    def mere(self) -> bool:
        """Whether it is an argument of which nothing says that it has a device at all."""
        return not self.kind and self.device.role is Role.INPUT and not self.observed

    @property
    def tells(self) -> bool:
        """Whether there is anything to tell."""
        return bool(self.says or self.observed)


class Watch:
    """The nodes to look at, and what came of them: the last that was said of each, and what callers make of it.

    Beside that stands what a run has seen: the interpreter does not hear of it here.
    """

    def __init__(self, nodes: Collection[Watched], observed: Observed | None = None) -> None:
        self._nodes = frozenset(nodes)
        self._observed = observed
        self._alone: dict[ast.AST, Known] = {}
        self._muted: dict[ast.AST, Known] = {}
        self._called: dict[ast.AST, dict[tuple[str, str], Known]] = {}

    def note(self, frame: Frame, node: ast.AST, value: Value) -> None:
        """A watched node has this value now."""
        if node not in self._nodes:
            return
        known = known_of(frame, value)
        seen = self._seen(frame, value)
        if seen is not None:
            known = replace(known, observed=seen.step.label)
        if frame.inlined:
            caller = frame.caller.info.name if frame.caller is not None and frame.caller.info is not None else ""
            called = replace(known, caller=caller or "the top level")
            self._called.setdefault(node, {})[called.caller, called.says] = called
        else:
            (self._muted if frame.interpreter.muted else self._alone)[node] = known

    def _seen(self, frame: Frame, value: Value) -> SeenSymbol | None:
        """What a run has seen of a value that the code knows by its name alone."""
        if self._observed is None:
            return None
        if isinstance(value, Opaque):
            return self._observed.known(value.key)
        if isinstance(value, Module):
            place = frame.own_place() if value.text == "self" else frame.place_of(value)
        else:
            place = value.device if isinstance(value, (Tensor, Batches, DeviceValue)) else device.UNKNOWN
        return self._observed.known(key_of(place, frame.info)) if place.kind is Kind.SYMBOL else None

    def met(self, node: ast.AST) -> bool:
        """Whether the interpreter came by, and not only on behalf of a caller."""
        return node in self._alone or node in self._muted

    def of(self, node: ast.AST) -> tuple[Known, ...]:
        """What is known of a node: by itself first, then what each caller adds to that."""
        own = self._alone.get(node) or self._muted.get(node) or Known()
        called = [known for known in self._called.get(node, {}).values() if known.tells and known.says != own.says]
        if own.tells and own.device.known and all(leaf.role is not Role.INPUT for leaf in own.device.leaves()):
            return (own,)
        return (own, *called) if own.tells or not called else tuple(called)


def known_of(frame: Frame, value: Value) -> Known:
    """What a value says of itself."""
    if isinstance(value, (Tensor, Batches)):
        return _tensor(frame, value)
    if isinstance(value, Module):
        return _module(frame, value)
    if isinstance(value, Loader):
        place = frame.state.settled(value.batches)
        made = frame.component(Loaders).made(value.oids)
        steps = tuple(Step(node, "made here") for node in made)
        return Known("loader", place, f"is a loader whose batches are on {place}" if place.known else "", True, steps)
    if isinstance(value, (Sequence, Mapping)):
        return _container(frame, value)
    if isinstance(value, Stateful) and value.tensors:
        return _held(frame, value.path.rpartition(".")[2], list(value.tensors))
    if isinstance(value, Opaque) and value.hint != "device":
        return _opaque(frame, value)
    named = placement(value)
    return Known() if named is None else _named(frame, value, frame.state.settled(named))


def _tensor(frame: Frame, value: Tensor | Batches) -> Known:
    operand = frame.operand(_NOWHERE, value)
    kind, place = "batch" if isinstance(value, Batches) else "tensor", operand.device
    story = operand.story
    if isinstance(value, Batches) or (value.batch and not story):
        oids = value.loaders if isinstance(value, Batches) else value.batch
        made = [Step(node, "its batches come from this loader") for node in frame.component(Loaders).made(oids)]
        story = (*made, *story)
    if not place.known and operand.near.known:
        return Known(kind, operand.near, f"is probably on {operand.near}", False, story)
    if not place.known:
        return Known(kind, place)
    says = f"is a {kind} {_on(place)}"
    if isinstance(value, Tensor) and (value.optional or not operand.certain):
        says = f"is, if a {kind}, {_on(place)}"
    return Known(kind, place, says, operand.certain, _with_choice(frame, place, story))


def _module(frame: Frame, module: Module) -> Known:
    own = module.text == "self" and frame.after_init and (module.oid, DEVICE) not in frame.state.heap
    place = frame.own_place() if own else frame.place_of(module)
    story = frame.origin_of(module).story
    if not module.has_state:
        return Known("module", device.UNKNOWN, "is a module without parameters, which works wherever its inputs are")
    if not place.known:
        return Known("module", place)
    return Known("module", place, f"is a module {_on(place)}", True, _with_choice(frame, place, story))


def _container(frame: Frame, value: Sequence | Mapping) -> Known:
    if isinstance(value, Mapping):
        kind, items = "dict", [*(held for _, held in value.items), value.other]
    else:
        kind, items = "list" if value.mutable else "tuple", list(value.items or (value.item,))
    return _held(frame, kind, items)


def _held(frame: Frame, kind: str, items: list[Value]) -> Known:
    """Something that holds tensors: told where they are, if all that is known of them is at one place."""
    held = [known for known in (known_of(frame, item) for item in items) if known.tells]
    places = {str(known.device) for known in held if known.device.known}
    if not places:
        return Known(kind)
    story = tuple(dict.fromkeys(step for known in held for step in known.story))[:_MOST_STEPS]
    place = held[0].device if len(places) == 1 else device.UNKNOWN
    return Known(kind, place, f"holds what is on {' and '.join(sorted(places))}", True, story)


def _opaque(frame: Frame, value: Opaque) -> Known:
    moved = DEVICE.of(frame.state.heap, value.key)
    if moved is not None and moved.known:
        story = (ORIGIN.of(frame.state.heap, value.key) or NO_ORIGIN).story
        return Known("module", moved, f"is {_on(moved)}", True, _with_choice(frame, moved, story))
    if value.managed is not None:
        return Known("module", device.UNKNOWN, "is placed by a library", True, (value.managed.by,))
    if value.hint in ("number", "host"):
        return Known()
    if value.near.known:
        return Known("", value.near, f"is probably on {value.near}", False)
    if value.role is Role.INPUT and isinstance(value.node, ast.arg):
        place = device.symbol(value.key, value.text, Role.INPUT)
        own = value.text == value.node.arg
        step = Step(value.node, f"`{value.text}` is an argument here" if own else "it comes from this argument")
        return Known(value.hint, place, "is wherever the caller keeps it", value.hint == "tensor", (step,))
    return Known()


def _named(frame: Frame, value: Value, place: Device) -> Known:
    """A device, or what names one."""
    if isinstance(value, Opaque):
        steps = (Step(value.node, "it comes from here"),) if value.node is not None else ()
        return Known("device", place, "is a device, of which nothing more is known", False, steps)
    if not isinstance(value, DeviceValue) or not place.known:
        return Known()
    steps = (Step(value.node, "named here"),) if value.node is not None else ()
    return Known("device", place, f"names {_choice(place)}", True, steps)


def _with_choice(frame: Frame, place: Device, story: tuple[Step, ...]) -> tuple[Step, ...]:
    """The story, with where the code chose the device of which it speaks."""
    for leaf in (place, *place.leaves()):
        held = frame.lookup(leaf.text) if leaf.text.isidentifier() else None
        if isinstance(held, DeviceValue) and held.node is not None and held.device == leaf:
            return (*story, Step(held.node, f"`{leaf.text}` is {_choice(leaf)}"))
    return story


def _on(place: Device) -> str:
    if place.role is Role.PLACE:
        return "wherever the module is put that it belongs to"
    return f"on {place}"


def _choice(place: Device) -> str:
    """A device spelled out: what a choice is between, and what decides where that is known."""
    if place.then is None or place.other is None:
        return str(place)
    if place.guard is AVAILABLE:
        return f"{_choice(place.then)} where an accelerator is available, else {_choice(place.other)}"
    leaves = sorted({str(leaf) for leaf in place.leaves()}, key=lambda text: (text == "the CPU", text))
    return " or ".join(leaves)


_NOWHERE = ast.Name("", ast.Load())
"""Stands for the node of an operand that is only asked for its device."""


def watched(
    tree: ast.Module,
    text: str,
    nodes: Collection[Watched],
    project: Project | None,
    catalog: Catalog,
    observations: Observations | None = None,
) -> Watch:
    """What the interpreter makes of some names of a file, each where it stands, and what a run has seen of them."""
    engine = Engine(tree, text, project=project, foreign=ForeignFile, catalog=catalog)
    watch = Watch(nodes, None if observations is None else Observed(engine.index, observations))
    engine.watch = watch.note
    for _ in engine.run():
        pass
    for node in nodes:
        around = [info.node for info in engine.index.functions.values()]
        around = [function for function in around if function.lineno <= node.lineno <= (function.end_lineno or 0)]
        if around and not watch.met(node):
            # nothing in it seems to concern devices
            engine.run_alone(engine.index.functions[max(around, key=lambda function: function.lineno)])
    return watch
