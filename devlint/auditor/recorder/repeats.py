"""Copies of a tensor that has not changed since the same place copied it to the same device."""

from __future__ import annotations

import ctypes
import zlib
from typing import Any, NamedTuple

import torch
from torch.multiprocessing import reductions

WeakStorage: Any = reductions.StorageWeakRef
"""Knows whether a storage lives on, and keeps its identity (``_cdata``) from being given to another one."""
_REMEMBERED = 4_096
"""So many copies are remembered, the latest ones."""
_PIECES, _PIECE = 16, 4_096
"""Of memory larger than all pieces together, so many pieces of so many bytes are compared."""


class _Key(NamedTuple):
    place: int
    target: str
    storage: int
    offset: int
    shape: tuple[int, ...]
    stride: tuple[Any, ...]


class _Seen(NamedTuple):
    storage: Any
    version: int
    checksum: int
    again: bool = False


class Repeats:
    """Remembers which host memory each place has copied where.

    Memory is the same if its storage lives on, its version has not been counted up, and its contents still have the
    same checksum: what NumPy or another process writes is not counted as a version.  Of large memory only parts
    are compared, and none where it belongs to somebody else.
    """

    def __init__(self) -> None:
        self._seen: dict[_Key, _Seen] = {}

    def is_repeat(self, source: torch.Tensor, target: str, place: int) -> bool:
        """Whether ``place`` has copied this unchanged host tensor to ``target`` before; it has now in any case."""
        if source.layout != torch.strided or source.numel() == 0 or source.is_inference():
            return False
        storage = source.untyped_storage()
        checksum = _checksum(source, storage)
        if checksum is None:
            return False
        shape, stride = tuple(source.shape), source.stride()
        key = _Key(place, target, storage._cdata, int(source.storage_offset()), shape, stride)
        version = source._version
        known = self._seen.pop(key, None)
        if known is None:
            if len(self._seen) >= _REMEMBERED:
                self._seen.pop(next(iter(self._seen)), None)
            self._seen[key] = _Seen(WeakStorage(storage), version, checksum)
            return False
        # written again, so that it is the latest
        same = known.version == version and known.checksum == checksum
        self._seen[key] = _Seen(known.storage, version, checksum, known.again or same)
        return same

    def places(self, storage: int) -> set[int]:
        """The places that copied this storage (its ``_cdata``) again without need."""
        return {key.place for key, seen in list(self._seen.items()) if key.storage == storage and seen.again}


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
