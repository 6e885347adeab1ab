"""What a run has seen of the functions of a file: where their arguments were, and the attributes of ``self``.

It is no part of the code, and says only what happened.  So it stands in for what the code leaves open, and for nothing
else: an argument of which a call in the file says where it is is *told*, and where the code asks where something is,
the answer is the code's.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from devlint import device
from devlint.device import AVAILABLE, Condition, Device, Kind, Role, Topic
from devlint.flow.program.symbols import ClassInfo, FunctionInfo, Index
from devlint.immutable import immutable, replace
from devlint.sites.base import Operand, Site, Step
from devlint.sites.observed import Observations, Sighting

_ASKING = ("device", "cuda", "cpu", "gpu")
"""Words in a condition that may ask where something is."""

_KINDS = {Role.INPUT: ("tensor", "tensors"), Role.PLACE: ("module",), Role.DEVICE: ("device",)}
"""What something has to be for the code to mean it by a symbol."""
_HOLDERS = ("value", "values", "inputs", "operands", "stray", "beside", "device", "target", "place")
"""The fields of sites that hold operands, or devices."""


@immutable(frozen=True, slots=True)
class SeenSymbol:
    """What is known of a symbol by observation: where it was seen, and what is said of that.

    ``alone`` says that the code makes no symbol of it.
    """

    sighting: Sighting
    step: Step
    alone: bool = False


class Observed:
    """The symbols of a file that a run has seen, but for those of which the code has ``told`` something else."""

    def __init__(self, index: Index, observations: Observations, told: Iterable[tuple[str, Device]] = ()) -> None:
        self._known: dict[str, SeenSymbol] = {}
        self._kept: dict[ClassInfo, list[str]] = {}
        self._run = observations.run
        self._functions = list(index.functions.values())
        for info in self._functions:
            seen = _of(observations, info)
            for node in info.node.args.posonlyargs + info.node.args.args + info.node.args.kwonlyargs:
                self._add(f"{info.qualname}:{node.arg}", node.arg, node, seen.get(node.arg))
        for owner in list(index.classes.values()):
            self._add_attributes(owner, observations)
        # what was given something that is anywhere has to do with devices, whatever its text says
        index.trigger({info.node.lineno for info in self._functions if _of(observations, info)})
        for symbol, place in told:
            known = self._known.get(symbol)
            if known is not None and not _agree(place, known.sighting.place):
                del self._known[symbol]

    def _add(self, symbol: str, text: str, node: ast.AST, sighting: Sighting | None, alone: bool = False) -> None:
        if sighting is not None and sighting.place.known:
            self._known[symbol] = SeenSymbol(sighting, Step(node, sighting.says(text, self._run)), alone)

    def _add_attributes(self, owner: ClassInfo, observations: Observations) -> None:
        """What all methods of a class have found in an attribute; if one has found something else, nothing is known."""
        found: dict[str, tuple[Sighting, ast.AST] | None] = {}
        for info in owner.methods.values():
            arguments = info.node.args.args
            for name, sighting in _of(observations, info).items():
                if not name.startswith("self.") or not arguments:
                    continue
                known = found.get(name, (sighting, arguments[0]))
                agree = known is not None and (known[0].kind, known[0].place) == (sighting.kind, sighting.place)
                best = (sighting, arguments[0]) if known is None or sighting.calls > known[0].calls else known
                found[name] = best if agree else None
        for name, pair in found.items():
            if pair is not None:
                self._add(f"{owner.oid}.{name[5:]}", name, pair[1], pair[0], alone=True)
                self._kept.setdefault(owner, []).append(name[5:])

    def known(self, symbol: str) -> SeenSymbol | None:
        """What is known of a symbol; of an item of a container, what is known of all that is in it."""
        known = self._known.get(symbol)
        if known is not None or not symbol.endswith("]") or symbol.count("[") != 1:
            return known
        whole = self._known.get(symbol.partition("[")[0])
        return whole if whole is not None and whole.sighting.kind == "tensors" else None

    def attributes(self, owner: ClassInfo) -> Iterator[tuple[str, str, SeenSymbol]]:
        """The attributes of ``self`` of which something is known: the name, the symbol, and what is known of it."""
        for name in self._kept.get(owner, ()):
            symbol = f"{owner.oid}.{name}"
            known = self.known(symbol)
            if known is not None:
                yield name, symbol, known

    def is_sized(self, symbol: str) -> bool:
        """Whether it always was a tensor with dimensions."""
        known = self.known(symbol)
        return known is not None and known.sighting.sized

    def place(self, named: Device, info: FunctionInfo | None, state: Paths) -> Device:
        """Where a symbol was that the code leaves open, in a function and where no condition asks for a device."""
        if named.guard is not None and named.then is not None and named.other is not None:
            then, other = self.place(named.then, info, state), self.place(named.other, info, state)
            kept = then is named.then and other is named.other
            return named if kept else device.choice(named.guard, then, other, named.text)
        if named.kind is not Kind.SYMBOL:
            return named
        key = key_of(named, info)
        known = self.known(key)
        if known is None or known.sighting.kind not in _KINDS[named.role or Role.DEVICE]:
            # the code takes it for something else than it was
            return named
        if named.role is Role.DEVICE and known.sighting.place.kind is Kind.CPU:
            # a device that can be chosen is none where all is on the CPU
            return named
        if state.bare or state.hosted or any(map(_asks, state.facts)):
            return device.UNKNOWN if known.alone else named
        return device.seen(known.sighting.place, replace(named, symbol=key))

    def attested(self, site: Site) -> Site:
        """A site with what the run has seen of the symbols in it, else of all that the function around it has.

        What is moved to a place that the code names is a tensor, and no module, by what was seen of it before.
        """
        found = (self.known(key) for key in dict.fromkeys(place.identity for place in _places(site)))
        steps = [known.step for known in found if known is not None]
        line = getattr(site.node, "lineno", 0)
        around = [info for info in self._functions if info.node.lineno <= line <= (info.node.end_lineno or 0)]
        if not steps and around:
            inner = max(around, key=lambda info: info.node.lineno)
            own = f"{inner.qualname}:", f"{inner.owner.oid if inner.owner is not None else ''}."
            steps = [known.step for symbol, known in self._known.items() if symbol.startswith(own)]
        return replace(site, observed=tuple(dict.fromkeys(steps))) if steps else site


def _agree(told: Device, seen: Device) -> bool:
    """Whether the code puts something where a run has seen it, or leaves to a setting what was an accelerator."""
    for leaf in told.assume(AVAILABLE, True).leaves():
        if leaf.kind is Kind.SYMBOL:
            if seen.kind is not Kind.ACCELERATOR:
                return False
        elif leaf.kind is not seen.kind or leaf.differs(seen):
            return False
    return True


def _of(observations: Observations, info: FunctionInfo) -> Mapping[str, Sighting]:
    """What was seen of a function."""
    first = min((node.lineno for node in info.node.decorator_list), default=info.node.lineno)
    return observations.functions.get((info.name, min(first, info.node.lineno)), {})


def rests_on_facts(site: Site) -> bool:
    """Whether the code leaves nothing open of the places in a site, so that no run can say anything else of them."""
    return all(place.kind is not Kind.SYMBOL for place in _places(site))


def _places(site: Site) -> Iterator[Device]:
    """Every device in a site, those apart of which one is chosen."""
    held: list[object] = [getattr(site, name, None) for name in _HOLDERS]
    for one in held:
        for part in one if isinstance(one, tuple) else (one,):
            place = part.device if isinstance(part, Operand) else part
            if isinstance(place, Device):
                yield from place.leaves()


class Paths(Protocol):
    """What is known of the paths that lead to a place."""

    facts: dict[Condition, bool]
    hosted: bool

    @property
    def bare(self) -> bool:
        """Whether a known condition says that everything is on the CPU here."""
        ...


def key_of(named: Device, info: FunctionInfo | None) -> str:
    """The symbol as it is looked up: where the module is whose method runs, each method has seen for itself."""
    owner = info.owner if info is not None else None
    own = owner is not None and named.role is Role.PLACE and owner.place == named.symbol
    return f"{info.qualname}:self" if own and info is not None else named.symbol


def _asks(fact: Condition) -> bool:
    """Whether a condition may ask where something is, so that it was perhaps elsewhere when it held."""
    return Topic.PLACE in fact.topics or any(word in fact.text.lower() for word in _ASKING)
