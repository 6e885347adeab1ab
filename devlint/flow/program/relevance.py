"""What a definition must mention before the interpreter enters it unasked.

Every file is searched for these words, so they are searched one by one: for a plain string, Python skips through a text
many times as fast as an expression does that has alternatives, or begins with a condition.  What is called is found by
its parenthesis, of which there are few.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property

from devlint import torch_api
from devlint.flow.catalog import distributions

_ANYWHERE = (
    *("cuda", "device", "DataLoader", "DataParallel", "data_parallel", "load_url", "state_dict_from_url"),
    *("register_buffer", "empty_cache", "gc.collect", "init_process_group", "_VISIBLE_", "square_subsequent_mask"),
    *("current_accelerator", "distributions.", "ist[nn.Module", "uple[nn.Module", "uence[nn.Module", ", nn.Module]"),
    ".type() ==",
)
"""Words that matter wherever they stand."""
_ENDS = (
    *(".to", ".cpu", "type_as", "xpu", ".backward", "Sampler", "random_split", ".numpy", "pin_memory"),
    *(".item", ".tolist", "pack_padded_sequence", "Tensor", "_window", "all_reduce", "all_gather", ")"),
)
"""How what is called ends where that is all that matters."""
_FACTORIES = (
    *("zeros", "ones", "full", "empty", "eye", "arange", "linspace", "logspace", "rand", "randn", "randint"),
    *("randperm", "tensor", "as_tensor", "from_numpy", "tril_indices", "triu_indices"),
)
_NAMES = ("load", "range", *_FACTORIES)
"""Functions and methods that matter where they are called by just this name."""
_FEW = 40
"""So many names are found fastest by one expression that holds them all."""
_PLACING = (
    *(".to", ".cpu", ".type_as", ".xpu", ".mps", ".pin_memory", "DataLoader", "Parallel", ".load", "Tensor"),
    *(".all_reduce", ".all_gather", ".broadcast"),
)
"""How what is called ends that says where something is, or has to be."""
_LITERAL = re.compile(r"= *[\[({]")
_ATTRIBUTE = re.compile(r"self\.\w+ *(?::[^=]+)?\Z")
"""What is before the sign, with an annotation perhaps."""
_CALLED = re.compile(r"(\w+)\(")
_MENTION = re.compile(r"(?<!\bself)\.(\w+)|\bself\.(\w+)\(")
"""An attribute, or a method that ``self`` calls: ``self.name`` alone is an attribute of that name of another class."""
_IMPORT = re.compile(r"(?:^|;)[ \t]*(?:from|import)[ \t]+([\w., \t]+)", re.MULTILINE)
_METHOD = re.compile(r"\.(\w+)\(")


def places(text: str) -> Iterator[int]:
    """Where a text mentions something that matters, in no particular order."""
    for word in _ANYWHERE:
        yield from each(text, word)
    yield from _called(text, _ENDS, _NAMES)
    yield from _filled(text)
    yield from (match.start() for match in _names_of_torch().finditer(text))


def says_where(text: str) -> bool:
    """Whether code says where something is, or makes a tensor."""
    return "device" in text or "cuda" in text or any(True for _ in _called(text, _PLACING, _FACTORIES))


def aliases(imports: Iterable[tuple[str, str]], text: str) -> Iterator[int]:
    """Where a text uses, under the name that an import gives it, what matters under its own."""
    called = [name for name, path in imports if path != name and _matters(f"{path}(")]
    # what the tables of torch's names know matters without a call, too
    known = [name for name, path in imports if torch_api.matters(path) or torch_api.matters(f"{path}.")]
    # modules of distributions, of which the classes are called
    known += [name for name, path in imports if f"{path}.".startswith(distributions.ROOT)]
    yield from calls(called, text)
    yield from spoken_of(known, text)


def calls(functions: Collection[str], text: str) -> Iterator[int]:
    """Where a text calls one of some functions, which may have dots in their names, but are not attributes."""
    if len(functions) > _FEW:
        known = frozenset(functions)
        found = re.finditer(r"(?<![\w.])([\w.]+)\(", text)
        yield from (match.start() for match in found if match[1] in known)
    elif functions:
        names = tuple(functions)
        for at, before in _parentheses(text):
            if before.endswith(names) and any(_is_begun(before, name) for name in names):
                yield at


def calls_of_self(methods: Collection[str], text: str) -> Iterator[int]:
    """Where a text calls one of some methods of ``self``."""
    for at, before in _parentheses(text) if methods else ():
        _, of_self, name = before.rpartition("self.")
        if of_self and name in methods:
            yield at


def called_of(module: str, text: str) -> Iterator[str]:
    """What a text calls of a module, which has one name there."""
    for at in _begun(text, f"{module}."):
        match = _CALLED.match(text, at + len(module) + 1)
        if match is not None:
            yield match[1]


def imported(text: str) -> Iterator[str]:
    """The modules that a text imports, wherever it does."""
    return (name.strip() for names in _IMPORT.findall(text) for name in names.split(","))


def spoken_of(words: Collection[str], text: str) -> Iterator[int]:
    """Where a text speaks of some names, which are not attributes."""
    if len(words) > _FEW:
        # one by one at every place would take the time of the text for each of them
        known = frozenset(words)
        yield from (match.start() for match in re.finditer(r"(?<![\w.])(\w+)\b", text) if match[1] in known)
    for word in words if len(words) <= _FEW else ():
        end = len(word)
        for at in _begun(text, word):
            if not _continues(text[at + end : at + end + 1]):
                yield at


def given(keywords: Iterable[str], text: str) -> set[str]:
    """The names, ``self`` left out, that a text gives as one of some keyword arguments."""
    found = (re.findall(rf"{word}\s*=\s*(?:self\.)?(\w+)", text) for word in keywords if word in text)
    return set(itertools.chain.from_iterable(found))


@functools.lru_cache(maxsize=4096)
def _matters(text: str) -> bool:
    return next(places(text), None) is not None


def each(text: str, word: str) -> Iterator[int]:
    """Where a text has a word in it, be it a part of another."""
    at = text.find(word)
    while at >= 0:
        yield at
        at = text.find(word, at + len(word))


def _begun(text: str, word: str) -> Iterator[int]:
    """Where a word stands that is neither an attribute nor the end of another word."""
    for at in each(text, word):
        if not at or not (text[at - 1] == "." or _continues(text[at - 1])):
            yield at


def _called(text: str, ends: tuple[str, ...], names: tuple[str, ...]) -> Iterator[int]:
    """Where a text calls what ends in a certain way, or has just one of some names: the places of the parentheses."""
    either = (*ends, *names)
    for at, before in _parentheses(text):
        if before.endswith(either) and (
            before.endswith(ends)
            or any(before.endswith(name) and not _continues(before[-len(name) - 1 : -len(name)]) for name in names)
        ):
            yield at


def _parentheses(text: str) -> Iterator[tuple[int, str]]:
    """Where parentheses open, and what is between each and the one before."""
    at = -1
    for before in text.split("(")[:-1]:
        at += len(before) + 1
        yield at, before


def _is_begun(text: str, name: str) -> bool:
    """Whether a text ends with a name that is neither an attribute nor the end of another name."""
    before = text[-len(name) - 1 : -len(name)]
    return text.endswith(name) and before != "." and not _continues(before)


def _filled(text: str) -> Iterator[int]:
    """Where a text gives an attribute a list, a tuple or a dict."""
    for match in _LITERAL.finditer(text):
        at = match.start()
        # nothing is read twice, however long a line is
        begin = text.rfind("=", 0, at) + 1
        target = _ATTRIBUTE.search(text, max(begin, text.rfind("\n", begin, at) + 1), at)
        if target is not None:
            yield target.start()


def _continues(character: str) -> bool:
    """Whether a character goes on with the name beside it."""
    return character == "_" or character.isalnum()


@functools.cache
def _names_of_torch() -> re.Pattern[str]:
    """What a name of torch's tables ends with, where that alone is not reason enough to enter a definition.

    They all begin with a dot, so that an expression for all of them has little to look at.
    """
    enough = (*_ENDS, *_NAMES)
    rest = (word for word in sorted(torch_api.words()) if not word.endswith(enough))
    words = [word for word in rest if not any(part in word for part in _ANYWHERE)]
    return re.compile(rf"\.(?:{'|'.join(map(re.escape, words))})(?!\w)")


class Constructors:
    """The methods that the constructors of a file call, by their text and that of the file."""

    def __init__(self, bodies: Iterable[str], text: str) -> None:
        self._bodies = "\n".join(bodies)
        self._text = text

    @cached_property
    def _called(self) -> frozenset[str]:
        return frozenset(_METHOD.findall(self._bodies))

    def alone_call(self, method: str) -> bool:
        """Whether the file calls a method in its constructors, and speaks of it nowhere else."""
        return method in self._called and _mentions(self._text, method) <= _mentions(self._bodies, method)


def _mentions(text: str, name: str) -> int:
    """How often a text has an attribute of that name."""
    lines = (line for line in text.split("\n") if name in line)
    found = itertools.chain.from_iterable(map(_MENTION.findall, lines))
    return sum(name in either for either in found)
