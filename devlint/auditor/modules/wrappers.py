"""DataParallel and DistributedDataParallel, as they are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from devlint.auditor.introspection.tensors import fields, home
from devlint.auditor.session import Listener, Session
from devlint.record import Wrapper

_MOST = 32


class Wrappers(Listener):
    """The listener to modules that wrap another one for several devices."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._made: list[tuple[int, Wrapper]] = []

    def install(self) -> None:
        """Hook in."""
        for cls in (nn.DataParallel, nn.parallel.DistributedDataParallel):
            self._session.patches.set(cls, "__init__", self._wrap(cls.__name__, cls.__init__))

    def describe(self) -> Mapping[str, object]:
        """The wrappers, in the order in which they were made."""
        frame = self._session.frames.frame
        return {"wrappers": tuple(replace(wrapper, frame=frame(place)) for place, wrapper in self._made)}

    def _wrap(self, name: str, original: Callable[..., None]) -> Callable[..., None]:
        def __init__(self_: nn.Module, module: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 -- a constructor
            before = self._session.guarded(_home, module) or ""
            error = ""
            try:
                original(self_, module, *args, **kwargs)
            except Exception as raised:
                error = str(raised).partition("\n")[0]
                raise
            finally:
                devices = args[0] if args else kwargs.get("device_ids")
                self._session.guarded(self._note, devices, Wrapper(name=name, module_device=before, error=error))

        return __init__

    def _note(self, devices: object, wrapper: Wrapper) -> None:
        if len(self._made) < _MOST:
            self._made.append((self._session.frames.here(), replace(wrapper, device_ids=_ids(devices))))


def _home(module: object) -> str:
    return home(module) if isinstance(module, nn.Module) and "_modules" in fields(module) else ""


def _ids(devices: Any) -> tuple[int, ...] | None:
    """The indices of devices given as numbers, names or devices; ``None`` where none are given."""
    if not isinstance(devices, (list, tuple)):
        return None
    return tuple(one if isinstance(one, int) else torch.device(one).index or 0 for one in devices)
