"""Data that scripts of repositories want to find, made of random numbers: small, and the same each time."""

from __future__ import annotations

import random
import struct
from array import array
from pathlib import Path

_IMAGES = 256
_SIDE = 28


def mnist(folder: Path) -> None:
    """Files in the format of MNIST, beside the script and above it, where its examples look for them."""
    for root in (folder / "data", folder.parent / "data"):
        raw = root / "MNIST" / "raw"
        raw.mkdir(parents=True, exist_ok=True)
        rng = random.Random(0)
        for part in ("train", "t10k"):
            head = struct.pack(">IIII", 2051, _IMAGES, _SIDE, _SIDE)
            (raw / f"{part}-images-idx3-ubyte").write_bytes(head + rng.randbytes(_IMAGES * _SIDE * _SIDE))
            labels = bytes(rng.randrange(10) for _ in range(_IMAGES))
            (raw / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 2049, _IMAGES) + labels)


def words(folder: Path) -> None:
    """Three files of words, as language models split them."""
    place = folder / "data" / "wikitext-2"
    place.mkdir(parents=True, exist_ok=True)
    rng = random.Random(0)
    for part in ("train", "valid", "test"):
        lines = (" ".join(f"word{rng.randrange(50)}" for _ in range(12)) for _ in range(320))
        (place / f"{part}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def characters(folder: Path) -> None:
    """Numbers of characters, two bytes each."""
    place = folder / "data" / "own"
    place.mkdir(parents=True, exist_ok=True)
    rng = random.Random(0)
    for part in ("train", "val"):
        (place / f"{part}.bin").write_bytes(array("H", (rng.randrange(60) for _ in range(2_000))).tobytes())


MAKERS = {maker.__name__: maker for maker in (mnist, words, characters)}
