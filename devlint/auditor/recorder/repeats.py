"""Copies of a tensor that has not changed since the same place copied it to the same device."""

from __future__ import annotations

import ctypes
import zlib
from typing import Any, NamedTuple

import torch
from torch.multiprocessing import reductions

from devlint.auditor.frames import NOWHERE

WeakStorage: Any = reductions.StorageWeakRef
"""Knows whether a storage lives on, and keeps its identity (``_cdata``) from being given to another one."""
_REMEMBERED = 4_096
"""So many copies are remembered, the latest ones."""
_PIECES, _PIECE = 16, 4_096
"""Of memory larger than all pieces together, so many pieces of so many bytes are compared."""


class Earlier(NamedTuple):
    """What was done before with a tensor that is copied now, and has not changed since."""

    again: bool = False
    """Whether the same place has copied it to the same device."""
    elsewhere: int = NOWHERE
    """The last other place that has."""


class _Key(NamedTuple):
    target: str
    storage: int
    offset: int
    shape: tuple[int, ...]
    stride: tuple[Any, ...]


class _Seen(NamedTuple):
    storage: Any
    version: int
    checksum: int
    places: tuple[int, ...]
    """The places that have copied it as it is, the last one at the end."""
    needless: frozenset[int] = frozenset()
    """Those that ever did so again."""


class Repeats:
    """Remembers which host memory each place has copied where.

    Memory is the same if its storage lives on, its version has not been counted up, and its contents still have the
    same checksum: what NumPy or another process writes is not counted as a version.  Of large memory only parts
    are compared, and none where it belongs to somebody else.
    """

    def __init__(self) -> None:
        self._seen: dict[_Key, _Seen] = {}

    def copied(self, source: torch.Tensor, target: str, place: int) -> Earlier:
        """``place`` copies this host tensor to ``target``: who has done so before, while it was what it is now?"""
        if source.layout != torch.strided or source.numel() == 0 or source.is_inference():
            return Earlier()
        storage = source.untyped_storage()
        checksum = _checksum(source, storage)
        if checksum is None:
            return Earlier()
        shape, stride = tuple(source.shape), source.stride()
        key = _Key(target, storage._cdata, int(source.storage_offset()), shape, stride)
        version = source._version
        known = self._seen.pop(key, None)
        if known is None:
            if len(self._seen) >= _REMEMBERED:
                self._seen.pop(next(iter(self._seen)), None)
            self._seen[key] = _Seen(WeakStorage(storage), version, checksum, (place,))
            return Earlier()
        same = (known.version, known.checksum) == (version, checksum)
        others = tuple(one for one in known.places if one != place) if same else ()
        again = same and len(others) < len(known.places)
        needless = known.needless | {place} if again else known.needless
        # written again, so that it is the latest
        self._seen[key] = _Seen(known.storage, version, checksum, (*others, place), needless)
        return Earlier(again, others[-1] if others else NOWHERE)

    def places(self, storage: int) -> set[int]:
        """The places that copied this storage (its ``_cdata``) again without need."""
        return {place for key, seen in list(self._seen.items()) if key.storage == storage for place in seen.needless}


def _checksum(tensor: torch.Tensor, storage: torch.UntypedStorage) -> int | None:
    """Of the memory between the first and the last element, or of pieces of it."""
    start = tensor.data_ptr()
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    size = (last + 1) * tensor.element_size()
    if size <= _PIECES * _PIECE:
        return zlib.crc32((ctypes.c_char * size).from_address(start))
    if storage.is_shared() or not storage.resizable():
        return None
    step = (size - _PIECE) // (_PIECES - 1)
    found = 0
    for piece in range(_PIECES):
        found = zlib.crc32((ctypes.c_char * _PIECE).from_address(start + piece * step), found)
    return found
