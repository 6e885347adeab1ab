"""Calls within a file: what the callers pass, and what is known of a result that could not be followed."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from devlint.device import AVAILABLE, Kind, Role
from devlint.device import UNKNOWN as NOWHERE
from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Component, Frame, Interpreter
from devlint.flow.domain.objects import Function
from devlint.flow.domain.state import State
from devlint.flow.domain.tensors import Tensor
from devlint.flow.domain.values import UNKNOWN, Unknown, Value, is_none
from devlint.flow.program.symbols import FunctionInfo
from devlint.flow.program.type_hints import annotated, may_be_none
from devlint.flow.transfer import havoc
from devlint.flow.transfer.escapes import Escapes
from devlint.sites.base import Operand, Site
from devlint.sites.placement import Forward, Hint, HintKind, HostRead, Operation

_CALLS_PER_FUNCTION = 12
_PLAIN_DECORATORS = frozenset(
    """no_grad inference_mode enable_grad set_grad_enabled autocast custom_fwd custom_bwd script script_method export
    ignore unused disable compile staticmethod classmethod property cached_property abstractmethod override overload
    final cache lru_cache setter""".split()
)
"""Decorators, by the last part of their names, that leave alone what a function returns."""

_GIVEN = (Role.INPUT, Role.PLACE)
"""What is wherever the caller has it: an argument, and ``self``."""


class DeferredClaims(Component):
    """The calls of a file's functions, and the claims about their arguments that wait for these calls."""

    shared = True

    def __init__(self, interpreter: Interpreter) -> None:
        self._times: dict[FunctionInfo, int] = {}
        self._on_the_host: dict[FunctionInfo, list[frozenset[str]]] = defaultdict(list)
        self._left_out: dict[FunctionInfo, list[frozenset[str]]] = defaultdict(list)
        self._alone: dict[FunctionInfo, list[Site]] = {}
        self._hints: list[Hint] = []
        self._escapes = interpreter.component(Escapes)

    def exhausted(self, info: FunctionInfo, limit: int = _CALLS_PER_FUNCTION) -> bool:
        """Whether a function was entered so often that it is not worth doing it once more."""
        return self._times.get(info, 0) >= limit

    def called(self, frame: Frame, info: FunctionInfo, arguments: dict[str, Value]) -> None:
        """``info`` is called in ``frame`` with these arguments: what a script tries out at its end says little."""
        self._times[info] = self._times.get(info, 0) + 1
        if frame.info is not None and not frame.interpreter.muted:
            bare = frame.state.bare
            host = frozenset(name for name, value in arguments.items() if bare or _is_host(value))
            self._on_the_host[info].append(host)
            self._left_out[info].append(frozenset(name for name, value in arguments.items() if is_none(value)))

    def holds_back(self, site: Site, frame: Frame) -> bool:
        """Whether a claim about arguments of which nothing is known waits until all callers are known."""
        if isinstance(site, Hint):
            self._hints.append(site)
            return True
        if frame.info is None or frame.inlined or not isinstance(site, (Operation, Forward, HostRead)):
            return False
        self._alone.setdefault(frame.info, []).append(site)
        return True

    def sites(self) -> Iterator[Site]:
        """The claims to which the callers say nothing, and the hints that nothing here follows up."""
        yield from (hint for hint in self._hints if hint.kind is not HintKind.ALTERNATIVE or self._open(hint))
        for info, sites in self._alone.items():
            if not info.private:
                host, none = _common(self._on_the_host.get(info)), _common(self._left_out.get(info))
                yield from (site for site in sites if not _is_about(site, host, none))
            elif info not in self._times:
                yield from sites

    def _open(self, hint: Hint) -> bool:
        return self._escapes.is_out(hint.stray.factory_node)


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
    named = any(leaf.kind is Kind.ACCELERATOR for place in places for leaf in place.leaves())
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


def outcome(frame: Frame, function: Function, call: Call, result: Value) -> Value:
    """What the caller gets: what the function returns or says that it does, unless a decorator may have changed it."""
    havoc.grown(frame, call, function.info, function.bound)
    if any(name.rpartition(".")[2] not in _PLAIN_DECORATORS for name in function.info.decorators):
        return UNKNOWN
    return as_annotated(function.info) if isinstance(result, Unknown) else result


def as_annotated(info: FunctionInfo) -> Value:
    """What a function says that it returns: a tensor, wherever that is, or nothing that is known."""
    says = info.node.returns
    if says is None or isinstance(info.node, ast.AsyncFunctionDef) or annotated(says) != "tensor":
        return UNKNOWN
    if any(isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple) for node in info.own):
        # the annotation is wrong
        return UNKNOWN
    return Tensor(NOWHERE, optional=may_be_none(says))
