"""Which line of one run is which line of another, where the code between the two has changed."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import TypeVar

_Item = TypeVar("_Item")

_ALIKE = 0.6
"""Texts that have so much in common are one that was edited."""
_MOST = 20_000
"""More pairs are not compared letter by letter."""


def pairs(
    before: Sequence[_Item],
    after: Sequence[_Item],
    *keys: Callable[[_Item], object],
    similar: Callable[[_Item], tuple[str, str]] | None = None,
) -> list[tuple[_Item | None, _Item | None]]:
    """All items, those together that are the same; what one side alone has stands beside ``None``.

    Each of ``keys`` is tried in turn with what is left: items of one key are the same, in their order; ``None`` is no
    key.  What is left after that may be ``similar``, which gives a text, and a place outside of which nothing is.
    """
    left, right = list(before), list(after)
    found: list[tuple[_Item | None, _Item | None]] = []
    matched: list[tuple[_Item, _Item]] = []
    for key in keys:
        matched += _taken(left, right, _equal(left, right, key))
    if similar is not None:
        matched += _taken(left, right, _alike(left, right, similar))
    found.extend(matched)
    found.extend((item, None) for item in left)
    found.extend((None, item) for item in right)
    return found


def _taken(left: list[_Item], right: list[_Item], found: Mapping[int, int]) -> list[tuple[_Item, _Item]]:
    """Take pairs, given by their places in both lists, out of them."""
    matched = [(left[first], right[second]) for first, second in found.items()]
    seconds = set(found.values())
    left[:] = [item for place, item in enumerate(left) if place not in found]
    right[:] = [item for place, item in enumerate(right) if place not in seconds]
    return matched


def _equal(left: Sequence[_Item], right: Sequence[_Item], key: Callable[[_Item], object]) -> dict[int, int]:
    """The pairs of one key, by their places."""
    waiting: dict[object, deque[int]] = defaultdict(deque)
    for place, item in enumerate(right):
        waiting[key(item)].append(place)
    waiting.pop(None, None)
    found: dict[int, int] = {}
    for place, item in enumerate(left):
        if others := waiting.get(key(item)):
            found[place] = others.popleft()
    return found


def _alike(
    left: Sequence[_Item], right: Sequence[_Item], similar: Callable[[_Item], tuple[str, str]]
) -> dict[int, int]:
    """The pairs of one place of the code that are most alike, by their places in the lists."""
    if len(left) * len(right) > _MOST:
        return {}
    rated: list[tuple[float, int, int]] = []
    matcher = SequenceMatcher(autojunk=False)
    for second, (other_text, other_place) in enumerate(map(similar, right)):
        matcher.set_seq2(other_text)  # of which it remembers what it has found out
        for first, (text, place) in enumerate(map(similar, left)):
            if place == other_place and text and other_text:
                matcher.set_seq1(text)
                if matcher.quick_ratio() >= _ALIKE and (ratio := matcher.ratio()) >= _ALIKE:
                    rated.append((-ratio, first, second))
    found: dict[int, int] = {}
    for _, first, second in sorted(rated):
        if first not in found and second not in found.values():
            found[first] = second
    return found
