"""What the text of an exception suggests for a tensor: another rank, another size, another dtype."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from devlint.prove.arguments.values import Tensor

_RANKS = re.compile(
    r"(\d)-?D\b|(\d)[- ]dim|values to unpack \(expected (\d)|dim\w* (?:of |to be |must be )(\d)|expected (\d), got"
)
_DIMENSIONS = re.compile(r"[Dd]imension|too many indices|index \d+ is out|rank|axis|not aligned|permute|dims")
_NUMBER = re.compile(r"(?<![\w.-])\d{1,4}(?![\w.])|(?<=x)\d{1,4}\b|\b\d{1,4}(?=x)")
_KINDS = (
    ("long", r"\b[Ll]ong\b|\bint64\b|\bInt\b|integer|\bindices\b|IntTensor|LongTensor|used as indices"),
    ("float", r"\b[Ff]loat|\bDouble\b|'Long'|'Bool'|floating point|'Byte'"),
    ("bool", r"\b[Bb]ool"),
)
_SIZES = (2, 3, 8, 8, 8)
MOST = 24


def suggestions(said: str, tensor: Tensor) -> list[Tensor]:
    """Tensors to try next, those of which the text speaks first."""
    kinds = (replace(tensor, kind=kind) for kind, pattern in _KINDS if kind != tensor.kind and re.search(pattern, said))
    numbers = [*dict.fromkeys(int(text) for text in _NUMBER.findall(said) if 0 < int(text) <= 4096)][:6]
    shapes = (*_of_ranks(said, tensor.shape), *_of_sizes(numbers, tensor.shape))
    found = dict.fromkeys([*kinds, *(tensor.shaped(*shape) for shape in shapes)])
    return list(found)[:MOST]


def _of_ranks(said: str, shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Shapes of the ranks that a text speaks of, and of those nearby if it speaks of dimensions."""
    stated = (int(next(filter(None, match.groups()))) for match in _RANKS.finditer(said))
    nearby = (len(shape) + more for more in (1, -1, 2)) if _DIMENSIONS.search(said) else ()
    for rank in (*stated, *nearby):
        if rank != len(shape) and 0 < rank <= len(_SIZES):
            yield _ranked(shape, rank)


def _of_sizes(numbers: Sequence[int], shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Shapes with the numbers that a text speaks of: as one of the sizes, and as all of them."""
    for number in numbers:
        for place in (-1, 1, 0, 2):
            if -len(shape) <= place < len(shape) and shape[place] != number:
                changed = [*shape]
                changed[place] = number
                yield tuple(changed)
    yield from (tuple(number for _ in shape) for number in numbers if 1 < number <= 64)


def _ranked(shape: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """A shape of another rank that begins and ends likewise."""
    if rank < len(shape):
        return (*shape[: rank - 1], shape[-1])
    return (*shape[:-1], *_SIZES[len(shape) - 1 : rank - 1], shape[-1]) if shape else _SIZES[:rank]
