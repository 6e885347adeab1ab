"""Optimizers: whether their parameters, and their state, are where and what they were when they were made."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as hooks
from torch.optim.optimizer import register_optimizer_step_pre_hook

from devlint.auditor.compatibility import is_compiling
from devlint.auditor.frames import NOWHERE
from devlint.auditor.introspection.tensors import device_of, fields, is_managed, leaves
from devlint.auditor.session import Listener, Session, emit
from devlint.record import Optimizer

_MOST = 64
_Owner = tuple["weakref.ref[nn.Module]", str]


@dataclass(slots=True)
class _Seen:
    """An optimizer, and what is told of it but for places; ``owners``: which module had a parameter, and its name."""

    optimizer: weakref.ref[torch.optim.Optimizer]
    told: Optimizer
    place: int
    owners: dict[int, _Owner]
    moved: int = NOWHERE


class Optimizers(Listener):
    """The listener to optimizers.

    Parameters are never referred to weakly: torch would refuse to swap them.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._local = threading.local()
        self._seen: list[_Seen] = []
        self._owners: dict[int, _Owner] = {}
        self._held: set[int] = set()

    def install(self) -> None:
        """Hook in."""
        original = torch.optim.Optimizer.__init__

        def init(optimizer: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> None:
            original(optimizer, *args, **kwargs)
            self._session.guarded(self._note, optimizer)

        def stepping(optimizer: torch.optim.Optimizer, args: object, kwargs: object) -> None:
            self._session.guarded(self._note_step, optimizer)

        self._session.patches.set(torch.optim.Optimizer, "__init__", init)
        self._session.patches.set(nn.Module, "_apply", self._applied(nn.Module._apply))
        self._session.patches.add(register_optimizer_step_pre_hook(stepping).remove)
        self._session.patches.add(hooks.register_module_parameter_registration_hook(self._registered).remove)

    def is_optimized(self, parameter: torch.Tensor) -> bool:
        """Whether an optimizer was made with the parameter, or has stepped with it."""
        return id(parameter) in self._held

    def describe(self) -> Mapping[str, object]:
        """The optimizers, in the order in which they were made."""
        frame = self._session.frames.frame
        told = (replace(seen.told, frame=frame(seen.place), moved=frame(seen.moved)) for seen in self._seen)
        return {"optimizers": tuple(told)}

    def _registered(self, module: nn.Module, name: str, parameter: object) -> None:
        if not is_compiling() and self._session.alive and parameter is not None:
            self._owners[id(parameter)] = (weakref.ref(module), name)

    def _note(self, optimizer: torch.optim.Optimizer) -> None:
        if len(self._seen) >= _MOST:
            return
        parameters = list(_parameters(optimizer))
        owners = {id(one): self._owners[id(one)] for one in parameters if id(one) in self._owners}
        owners = {key: owner for key, owner in owners.items() if id(_current(owner)) == key}
        self._held |= {id(one) for one in parameters}
        name = type(optimizer).__name__
        told = Optimizer(name=name, parameters=len(parameters), made_on=_devices(parameters))
        self._seen.append(_Seen(weakref.ref(optimizer), told, self._session.frames.here(), owners))

    def _applied(self, original: Callable[..., nn.Module]) -> Callable[..., nn.Module]:
        def _apply(module: nn.Module, *args: Any, **kwargs: Any) -> nn.Module:
            inside = getattr(self._local, "applying", False)
            if inside or not self._session.alive:
                return original(module, *args, **kwargs)
            self._session.guarded(emit, self._session.signals.move)
            self._local.applying = True
            try:
                result = original(module, *args, **kwargs)
            finally:
                self._local.applying = False
            self._session.guarded(self._look_for_moves)
            return result

        return _apply

    def _look_for_moves(self) -> None:
        for seen in self._seen:
            optimizer = seen.optimizer()
            if optimizer is None or seen.moved != NOWHERE:
                continue
            if _devices(_parameters(optimizer)) != seen.told.made_on:
                seen.moved = self._session.frames.here()
                state = [one for part in optimizer.state.values() for _, one in leaves(part) if one.dim()]
                seen.told = replace(seen.told, state_on=_devices(state))

    def _note_step(self, optimizer: torch.optim.Optimizer) -> None:
        for seen in self._seen:
            if seen.optimizer() is optimizer and not seen.told.stepped_on:
                parameters = list(_parameters(optimizer))
                self._held |= {id(one) for one in parameters}
                orphans = sum(_is_orphan(one, seen.owners.get(id(one))) for one in parameters)
                seen.told = replace(seen.told, stepped_on=_devices(parameters), orphans=orphans)


def _parameters(optimizer: torch.optim.Optimizer) -> Iterator[torch.Tensor]:
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if isinstance(parameter, torch.Tensor):
                yield parameter


def _devices(tensors: Any) -> tuple[str, ...]:
    return tuple(sorted({device_of(tensor) for tensor in tensors}))


def _current(owner: _Owner) -> object:
    """What a module has under the name now."""
    module = owner[0]()
    return None if module is None else (fields(module).get("_parameters") or {}).get(owner[1])


def _is_orphan(parameter: torch.Tensor, owner: _Owner | None) -> bool:
    """Whether its module has another one in its place, so that nothing gives it a gradient any more."""
    if owner is None or parameter.grad is not None:
        return False
    now = _current(owner)
    if now is parameter or not isinstance(now, nn.Parameter) or is_managed(now):
        return False
    return now.shape == parameter.shape
