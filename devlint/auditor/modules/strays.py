"""Which tensors and modules did harm because a module holds them without having registered them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

from torch import nn

from devlint.auditor.explanation.provenance import of_attribute
from devlint.auditor.introspection.tensors import all_tensors, describe, home, storage_of
from devlint.auditor.introspection.unregistered import Held, unregistered
from devlint.auditor.session import Session
from devlint.record import Stray

Key = tuple[str, str, str, str]
"""A stray: the class and the path of its owner, its name and its kind."""


@dataclass(slots=True)
class _Seen:
    """A stray as last seen; ``proven`` says that it took part in a mismatch, or was trained by nobody."""

    stray: Stray
    storages: set[int] = field(default_factory=set)
    sizes: dict[tuple[object, ...], int] = field(default_factory=dict)
    proven: bool = False


class Strays:
    """Collects what the modules of a run hold unregistered, and tells of what did harm.

    That is: what took part in a mismatch, what is copied again and again, and a module whose parameters get gradients
    although no optimizer has them while one has those of its owner.  Neither tensors nor modules are kept alive.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._seen: dict[Key, _Seen] = {}

    def scan(self, root: nn.Module) -> None:
        """Look through a model that has just run."""
        trained = any(self._session.signals.is_optimized(one) for _, one in all_tensors(root))
        for held in unregistered(root):
            seen = self._seen[self.note(held, home(held.owner) or home(root))]
            gradients = isinstance(held.value, nn.Module) and any(one.grad is not None for one in held.tensors)
            seen.proven |= gradients and trained and not seen.stray.optimized

    def took_part(self, keys: Iterable[Key]) -> None:
        """These took part in a mismatch that the run died of."""
        for key in keys:
            self._seen[key].proven = True

    def describe(self) -> tuple[Stray, ...]:
        """What did harm so far."""
        found = []
        for seen in self._seen.values():
            copying = self._session.signals.places_copying
            places = sorted({place for storage in seen.storages for place in copying(storage)})
            frames = map(self._session.frames.frame, places)
            moved = tuple(frame for frame in frames if frame is not None)
            if moved or seen.proven:
                found.append(replace(seen.stray, moved=moved))
        return tuple(found)

    def note(self, held: Held, owner_device: str) -> Key:
        """Remember one, and where its owner is; returns what :meth:`took_part` knows it by."""
        kind: Literal["tensor", "module"] = "module" if isinstance(held.value, nn.Module) else "tensor"
        owner = type(held.owner).__name__
        key = (owner, held.path, held.name, kind)
        tensors = held.tensors
        optimized = any(self._session.signals.is_optimized(one) for one in tensors)
        seen = self._seen.get(key)
        if seen is None:
            stray = Stray(
                owner=owner,
                path=held.path,
                name=held.name,
                kind=kind,
                container=held.container,
                device=held.device,
                owner_device=owner_device,
                example=describe(tensors[0]),
                frame=of_attribute(held.owner, held.name)[0],
            )
            seen = self._seen[key] = _Seen(stray)
        if kind == "tensor":
            seen.storages.add(storage_of(tensors[0]))
        else:
            seen.sizes[held.keys] = sum(one.numel() for one in tensors if isinstance(one, nn.Parameter))
        seen.stray = replace(
            seen.stray,
            device=held.device,
            owner_device=owner_device,
            parameters=sum(seen.sizes.values()),
            optimized=optimized,
        )
        return key
