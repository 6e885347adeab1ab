"""What a definition must mention before the interpreter enters it unasked.

Every file is searched for these words, so they are searched one by one: for a plain string, Python skips through a text
several times as fast as an expression with many alternatives does.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Collection, Iterable, Iterator

from devlint import torch_api

_ANYWHERE = (
    *("cuda", "device", ".to(", ".cpu(", "type_as(", "xpu(", "DataLoader", "DataParallel", "data_parallel"),
    *("load_url", "state_dict_from_url", "register_buffer", "empty_cache", "gc.collect", ".backward(", "Sampler("),
    *("random_split(", "init_process_group", "_VISIBLE_", ".numpy(", "pin_memory(", "pack_padded_sequence("),
    *("Tensor(", "_window(", "square_subsequent_mask", "current_accelerator", ")("),
)
"""Words that matter wherever they stand."""
_WHOLE = (
    *("load(", "zeros(", "ones(", "full(", "empty(", "eye(", "arange(", "range(", "linspace(", "logspace(", "rand("),
    *("randn(", "randint(", "randperm(", "tensor(", "as_tensor(", "from_numpy(", "tril_indices(", "triu_indices("),
)
"""Calls that matter where nothing stands before the name."""
_FEW = 40
"""So many names are found fastest by one expression that holds them all."""
_WHERE = re.compile(
    r"""device|cuda|\.(?:to|cpu|type_as|xpu|mps|pin_memory)\(|DataLoader\(|Parallel\(|\.load\(|Tensor\(
    |(?<![\w])(?:zeros|ones|full|empty|eye|arange|linspace|logspace|rand|randn|randint|randperm|tensor|as_tensor
    |from_numpy|tril_indices|triu_indices)\(""",
    re.VERBOSE,
)
"""What says where something is, or makes what somebody has to move."""
_CONTAINER = re.compile(r"self\.\w+ *(?::[^=\n]+)?= *[\[({]")
"""An attribute that is given a list, a tuple or a dict."""


def places(text: str) -> Iterator[int]:
    """Where a text mentions something that matters, in no particular order."""
    for word in _ANYWHERE:
        yield from _each(text, word)
    for word in _WHOLE:
        yield from (at for at in _each(text, word) if not at or not _continues(text[at - 1]))
    yield from (match.start() for match in _CONTAINER.finditer(text))
    yield from (match.start() for match in _names_of_torch().finditer(text))


def says_where(text: str) -> bool:
    """Whether code says where something is, or makes a tensor."""
    return _WHERE.search(text) is not None


def aliases(imports: Iterable[tuple[str, str]], text: str) -> Iterator[int]:
    """Where a text uses, under the name that an import gives it, what matters under its own."""
    called = [name for name, path in imports if path != name and _matters(f"{path}(")]
    # what the tables of torch's names know matters without a call, too
    known = [name for name, path in imports if torch_api.matters(path) or torch_api.matters(f"{path}.")]
    yield from calls(called, text)
    yield from spoken_of(known, text)


def calls(functions: Collection[str], text: str) -> Iterator[int]:
    """Where a text calls one of some functions, which may have dots in their names, but are not attributes."""
    if len(functions) > _FEW:
        known = frozenset(functions)
        found = re.finditer(r"(?<![\w.])([\w.]+)\(", text)
        yield from (match.start() for match in found if match[1] in known)
    for name in functions if len(functions) <= _FEW else ():
        for at in _each(text, f"{name}("):
            if not at or not (text[at - 1] == "." or _continues(text[at - 1])):
                yield at


def spoken_of(words: Collection[str], text: str) -> Iterator[int]:
    """Where a text speaks of some names, which are not attributes."""
    if len(words) > _FEW:
        yield from any_of(words, r"(?<![\w.])", r"\b", text)
    for word in words if len(words) <= _FEW else ():
        end = len(word)
        for at in _each(text, word):
            begins = not at or not (text[at - 1] == "." or _continues(text[at - 1]))
            if begins and not _continues(text[at + end : at + end + 1]):
                yield at


def given(keywords: Iterable[str], text: str) -> set[str]:
    """The names, ``self`` left out, that a text gives as one of some keyword arguments."""
    found = (re.findall(rf"{word}\s*=\s*(?:self\.)?(\w+)", text) for word in keywords if word in text)
    return set(itertools.chain.from_iterable(found))


def any_of(words: Collection[str], before: str, after: str, text: str) -> Iterator[int]:
    """Where one of some names stands in a text, between two expressions."""
    if not words:
        return
    if len(words) > _FEW:
        # one by one at every place would take the time of the text for each of them
        known = frozenset(words)
        yield from (match.start() for match in re.finditer(rf"{before}(\w+){after}", text) if match[1] in known)
    else:
        listed = "|".join(map(re.escape, sorted(words)))
        yield from (match.start() for match in re.finditer(rf"{before}(?:{listed}){after}", text))


@functools.lru_cache(maxsize=4096)
def _matters(text: str) -> bool:
    return next(places(text), None) is not None


def _each(text: str, word: str) -> Iterator[int]:
    at = text.find(word)
    while at >= 0:
        yield at
        at = text.find(word, at + len(word))


def _continues(character: str) -> bool:
    """Whether a character goes on with the name beside it."""
    return character == "_" or character.isalnum()


@functools.cache
def _names_of_torch() -> re.Pattern[str]:
    """What a name of torch's tables ends with, where that alone is not reason enough to enter a definition.

    They all begin with a dot, so that an expression for all of them has little to look at.
    """
    plain = re.compile("|".join(map(re.escape, (*_ANYWHERE, *_WHOLE))))
    words = (word for word in sorted(torch_api.words()) if not plain.search(f"{word}("))
    return re.compile(rf"\.(?:{'|'.join(map(re.escape, words))})(?!\w)")
