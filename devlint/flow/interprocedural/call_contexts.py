"""Call contexts: the sites of a function that hang on its callers, kept until all calls within the file are known."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from devlint.device import AVAILABLE, Kind, Role
from devlint.flow.catalog.schema import Row
from devlint.flow.core.call import Call
from devlint.flow.core.events import Observer
from devlint.flow.core.interpreter import Frame, Interpreter
from devlint.flow.domain.state import State
from devlint.flow.domain.tensors import Tensor
from devlint.flow.domain.values import Value, is_none
from devlint.flow.program import training_steps
from devlint.flow.program.symbols import FunctionInfo
from devlint.flow.syntax import nodes
from devlint.flow.transfer.escapes import Escapes
from devlint.immutable import replace
from devlint.sites.base import Operand, Site
from devlint.sites.costs import Sync
from devlint.sites.devices import ApiCall, Literal
from devlint.sites.placement import Forward, Hint, HintKind, HostRead, Operation
from devlint.sites.transfers import Transfer

_CALLS_PER_FUNCTION = 12
_GIVEN = (Role.INPUT, Role.PLACE)
"""What is wherever the caller has it: an argument, and ``self``."""


class CallContexts(Observer):
    """How the functions of a file are called, and the sites that hang on that.

    A deferred claim, which is about arguments of which nothing is known, waits for what the callers pass.  A copy is
    one of each step, and what names an accelerator is guarded, where all that use a function say so.
    """

    shared = True
    wants_inlined = True
    wants_quiet = True

    def __init__(self, interpreter: Interpreter) -> None:
        self._interpreter = interpreter
        self._escapes = interpreter.component(Escapes)
        self._named: dict[str, list[FunctionInfo]] = defaultdict(list)
        for info in interpreter.index.functions.values():
            if info.owner is None:
                self._named[info.name].append(info)
        self._times: dict[FunctionInfo, int] = defaultdict(int)
        self._in_steps: set[FunctionInfo] = set()
        """The functions that a loop of steps calls in every round."""
        self._in_training: set[FunctionInfo] = set()
        """Those of them that a loop of training steps does."""
        self._calls: dict[FunctionInfo, set[FunctionInfo]] = defaultdict(set)
        """What each function calls whenever it is called."""
        self._by_script: set[FunctionInfo] = set()
        """The functions that the top level calls, or what it calls does, and in no loop."""
        self._on_the_host: dict[FunctionInfo, list[frozenset[str]]] = defaultdict(list)
        self._left_out: dict[FunctionInfo, list[frozenset[str]]] = defaultdict(list)
        self._mentions: dict[FunctionInfo, dict[tuple[int, int], bool]] = {}
        self._sites: list[Site] = []
        self._alone: dict[FunctionInfo, list[Site]] = defaultdict(list)
        """The deferred claims of each function."""
        self._hints: list[Hint] = []
        self._copies: dict[int, FunctionInfo] = {}
        """Copies that each call of a function makes, by identity."""
        self._waits: dict[int, FunctionInfo] = {}
        """Waits that each call of a function makes."""
        self._private: dict[int, FunctionInfo] = {}
        """What private functions do, whatever is available."""
        self._listening: list[tuple[Interpreter | None, int, list[Operation | Forward | Hint]]] = []

    # -- calls -------------------------------------------------------------------------------------------------------

    def called(self, frame: Frame, info: FunctionInfo) -> None:
        """A function is called; perhaps in every round of a loop."""
        if frame.interpreter.muted or frame.inlined:
            return
        if not frame.loops and (frame.info is None or frame.info in self._by_script):
            self._by_script.add(info)
        always = not frame.branches and not frame.exits
        if frame.info is not None and always and not any(loop.encloses or loop.skips for loop in frame.loops):
            self._calls[frame.info].add(info)
        steps = [loop for loop in frame.loops if loop.step and not loop.encloses]
        if steps and frame.branches <= frame.loops[-1].branches and not frame.loops[-1].continues:
            self._in_steps.add(info)
            if any(frame.interpreter.loop_text(loop.node).trains for loop in steps):
                self._in_training.add(info)

    def on_unfollowed_call(self, frame: Frame, call: Call, path: str, row: Row | None) -> None:
        """A name is called of which it is not known what it means by then: perhaps what the file defines under it."""
        called = call.node.func
        if not path and isinstance(called, ast.Name):
            for info in self._named.get(called.id, ()):
                self.called(frame, info)

    def on_function(self, frame: Frame, node: ast.Name, info: FunctionInfo) -> None:
        """The code speaks of a function, to call it or to hand it on; perhaps only where an accelerator is."""
        if info.private and frame.info is not info and info.index is frame.interpreter.index:
            places = self._mentions.setdefault(info, {})
            place = (node.lineno, node.col_offset)
            places[place] = places.get(place, True) and frame.state.accelerated

    def exhausted(self, info: FunctionInfo, limit: int = _CALLS_PER_FUNCTION) -> bool:
        """Whether a function was entered so often that it is not worth doing it once more."""
        return self._times.get(info, 0) >= limit

    def entered(self, frame: Frame, info: FunctionInfo, arguments: dict[str, Value]) -> None:
        """``info`` is entered from ``frame`` with these arguments: what a script tries out at its end says little."""
        self._times[info] += 1
        if frame.info is not None and not frame.interpreter.muted:
            bare = frame.state.bare
            host = frozenset(name for name, value in arguments.items() if bare or _is_host(value))
            self._on_the_host[info].append(host)
            self._left_out[info].append(frozenset(name for name, value in arguments.items() if is_none(value)))

    # -- probing -----------------------------------------------------------------------------------------------------

    @contextmanager
    def listen(self, interpreter: Interpreter | None = None) -> Iterator[list[Operation | Forward | Hint]]:
        """Hear what is claimed; perhaps only what one file says of itself, and not where it merely tries things out."""
        heard: list[Operation | Forward | Hint] = []
        self._listening.append((interpreter, 0 if interpreter is None else interpreter.muted, heard))
        yield heard
        self._listening.pop()

    def claim(self, site: Site, frame: Frame) -> None:
        """A claim is made in a frame, aloud or not: whoever began to listen last hears it."""
        if self._listening and isinstance(site, (Operation, Forward, Hint)):
            one, level, heard = self._listening[-1]
            if one is None or (frame.interpreter is one and one.muted == level and not frame.silent):
                heard.append(site)

    # -- sites -------------------------------------------------------------------------------------------------------

    def keep(self, site: Site, frame: Frame) -> None:
        """Keep a site, which may hang on who calls its function."""
        info = frame.info
        if info is not None and isinstance(site, Transfer) and not frame.branches and not frame.loops:
            self._copies[id(site)] = info
        if info is not None and isinstance(site, Sync) and site.region == "call":
            self._waits[id(site)] = info
        if info is not None and info.private and isinstance(site, (Transfer, Literal, ApiCall)):
            self._private[id(site)] = info
        if isinstance(site, Hint):
            self._hints.append(site)
        elif info is not None and not frame.inlined and isinstance(site, (Operation, Forward, HostRead)):
            self._alone[info].append(site)
        else:
            self._sites.append(site)

    def sites(self) -> Iterator[Site]:
        """All sites that were kept, with what is known once all calls are, but for claims that the callers refute."""
        guarded = self._guarded()
        steps, training = self.in_each_step()
        for site in (*self._sites, *self._claims()):
            made = id(site)
            if isinstance(site, Transfer) and self._copies.get(made) in steps:
                site = replace(site, scope=replace(site.scope, called=True))
            if isinstance(site, Sync) and self._waits.get(made) in training:
                site = replace(site, region="train")
            if isinstance(site, (Transfer, Literal, ApiCall)) and self._private.get(made) in guarded:
                site = replace(site, scope=replace(site.scope, guarded=True))
            yield site

    def in_each_step(self) -> tuple[set[FunctionInfo], set[FunctionInfo]]:
        """The functions that run in every step of a loop, of this file or of a library; and in every training step."""
        functions = [*self._interpreter.index.functions.values()]
        hooks = {info for info in functions if training_steps.is_hook(info)}
        alone = {info for info in functions if training_steps.is_step(info)} - (self._by_script - self._in_steps)
        return self._with_callees(self._in_steps | hooks), self._with_callees(self._in_training | hooks | alone)

    def _with_callees(self, found: set[FunctionInfo]) -> set[FunctionInfo]:
        """The functions, and what these call whenever they are called."""
        left = [*found]
        while left:
            new = self._calls.get(left.pop(), set()) - found
            found |= new
            left += new
        return found

    def _claims(self) -> Iterator[Site]:
        """The hints that nothing here follows up, and the deferred claims to which the callers say nothing."""
        for hint in self._hints:
            if hint.kind is not HintKind.ALTERNATIVE or self._escapes.is_out(hint.stray.factory_node):
                yield hint
        for info, sites in self._alone.items():
            if not info.private:
                host, none = _common(self._on_the_host.get(info)), _common(self._left_out.get(info))
                yield from (site for site in sites if not _is_about(site, host, none))
            elif info not in self._times:
                yield from sites

    def _guarded(self) -> set[FunctionInfo]:
        """The functions of which every mention in the file, but for their own, is guarded."""
        found = {info for info, places in self._mentions.items() if all(places.values())}
        spoken = {info.name for info in found}
        everywhere = nodes.walk(self._interpreter.tree) if found else ()
        mentions = [node for node in everywhere if isinstance(node, ast.Name) and node.id in spoken]
        return {info for info in found if all(self._followed(info, node) for node in mentions if node.id == info.name)}

    def _followed(self, info: FunctionInfo, node: ast.Name) -> bool:
        """Whether a mention of a function is one that was seen, or its own."""
        inside = info.node.lineno <= node.lineno <= (info.node.end_lineno or 0)
        return inside or (node.lineno, node.col_offset) in self._mentions[info]


def _is_host(value: Value) -> bool:
    """Whether a tensor is on the CPU, or made of data which are probably no tensor yet."""
    if not isinstance(value, Tensor):
        return False
    place = value.device if value.device.known or value.origin.story else value.near
    return place.kind is Kind.CPU


def _common(calls: list[frozenset[str]] | None) -> frozenset[str]:
    """The names of which all calls say the same."""
    return frozenset.intersection(*calls) if calls else frozenset()


def _is_about(site: Site, host: frozenset[str], none: frozenset[str]) -> bool:
    """Whether all that a claim says of places away from the CPU it says of arguments that all callers have there.

    What would take the place of such an argument may be ``none`` of the callers'.
    """
    elsewhere = [leaf for operand in _operands(site) for leaf in operand.device.leaves() if leaf.kind is not Kind.CPU]
    named = {leaf.text for leaf in elsewhere if leaf.role in _GIVEN}
    return all(leaf.role in _GIVEN for leaf in elsewhere) and not named.isdisjoint(host) and named <= host | none


def is_despite(site: Site, state: State) -> bool:
    """Whether a claim says that an accelerator is used where none is wanted: the code names one."""
    places = [operand.device for operand in _operands(site)]
    if isinstance(site, Forward):
        places.append(site.device)
    named = any(leaf.kind is Kind.ACCELERATOR and not leaf.observed for place in places for leaf in place.leaves())
    # where there is none, nothing is anywhere else
    return named and state.facts.get(AVAILABLE) is not False


def _operands(site: Site) -> tuple[Operand, ...]:
    if isinstance(site, Operation):
        return site.operands
    if isinstance(site, Hint):
        return site.stray, site.beside
    if isinstance(site, HostRead):
        return site.values
    return site.inputs if isinstance(site, Forward) and site.device.kind is Kind.CPU else ()
