"""Which values may be meant by a parameter: by its annotation, by how it is used, by its name, and at last all."""

from __future__ import annotations

import enum
import inspect
import itertools
import re
import sys
import types
import typing
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from devlint.prove.arguments.usage import Usage, usages
from devlint.prove.arguments.values import Hint, Instance, Items, Namespace, Plain, Table, Tensor, Value

FLOATS = tuple(Tensor(shape) for shape in ((2, 3), (2,), (2, 3, 8, 8), (2, 3, 4), (3, 3), (4, 8), (1,), (), (0, 3)))
LONGS = (Tensor((2, 3), "long"), Tensor((2,), "long"), Tensor((2,), "ones"), Tensor((2, 3), "ones"))
BOOLS = (Tensor((2, 3), "bool"), Tensor((2,), "bool"))
TENSORS = (*FLOATS, *LONGS, *BOOLS)
NUMBERS = tuple(Plain(str(number)) for number in (4, 2, 8, 3, 1, 16, 0, 32))
FRACTIONS = (Plain("0.5"), Plain("1.0"))
FLAGS = (Plain("True"), Plain("False"))
DEVICES = (Plain('"{place}"'), Plain('torch.device("{place}")'))
_NN = ("from torch import nn",)
MODULES = (
    Plain("nn.Linear(3, 3){moved}", _NN),
    Plain("nn.Linear(8, 8){moved}", _NN),
    Plain("nn.Identity()", _NN),
    Plain("nn.Conv2d(3, 3, 3, padding=1){moved}", _NN),
    Plain("nn.Embedding(8, 3){moved}", _NN),
    Plain("nn.LSTM(3, 3, batch_first=True){moved}", _NN),
)
LOSSES = (Plain("nn.MSELoss()", _NN), Plain("nn.CrossEntropyLoss()", _NN))
OPTIMIZERS = (Plain("torch.optim.SGD(nn.Linear(3, 3){moved}.parameters(), 0.1)", _NN),)
LOADERS = (
    Plain("[(torch.rand(2, 3{on}), torch.zeros(2, dtype=torch.long{on}))]"),
    Plain("[(torch.rand(2, 3{on}), torch.rand(2, 3{on}))]"),
    Plain("[torch.rand(2, 3{on})]"),
    Plain("[(torch.rand(2, 8{on}), torch.zeros(2, dtype=torch.long{on}))]"),
    Plain("[(torch.rand(2, 3, 8, 8{on}), torch.zeros(2, dtype=torch.long{on}))]"),
    Plain("[(torch.rand(2, 3{on}),)]"),
)
DATASETS = (
    Plain(
        "TensorDataset(torch.rand(4, 3{on}), torch.zeros(4, dtype=torch.long{on}))",
        ("from torch.utils.data import TensorDataset",),
    ),
    Plain("[torch.rand(3{on}), torch.rand(3{on})]"),
)
TEXTS = (Plain('"x"'), Plain('""'))
NOTHING = Plain("None")
LISTS = (
    Plain("[torch.rand(2, 3{on})]"),
    Plain("[torch.rand(3, 8, 8{on})]"),
    Plain("[2, 2]"),
    Plain("(8, 8)"),
    Plain('["x"]'),
    Plain("[]"),
)
ARRAYS = tuple(
    Plain(f"numpy.{made}", ("import numpy",))
    for made in ("zeros((2, 3), 'float32')", "zeros(2, int)", "zeros((8, 8, 3), 'uint8')")
)
FUNCTIONS = (Plain("lambda *args, **kwargs: args[0]"), Plain("torch.relu"))
OTHERS = (
    *TENSORS[:4],
    *NUMBERS[:3],
    *MODULES[:2],
    *FRACTIONS[:1],
    *FLAGS,
    *LISTS,
    *TEXTS[:1],
    NOTHING,
    *FUNCTIONS,
    *ARRAYS,
)
_BY_NAME: tuple[tuple[str, tuple[Value, ...]], ...] = (
    (r"(\w+_)?device|map_location", DEVICES),
    (r"dtype", (Plain("torch.float32"),)),
    (r"(\w+_)?(data_?)?loader|batches", LOADERS),
    (r"(\w+_)?dataset|data", (*DATASETS, *FLOATS)),
    (r"optim(izer)?", OPTIMIZERS),
    (r"criterion|loss_?f(n|unc)?", LOSSES),
    (r"(\w+_)?(model|net|network|module|backbone|encoder|decoder|head|layer|block)", MODULES),
    (r"generator", (Plain('torch.Generator("{here}")'), NOTHING)),
    (r"(\w+_)?(lengths|lens)", (Tensor((2,), "ones"), Plain("[3, 3]"))),
    (r"(\w+_)?(ids|labels?|targets?|tokens?|index|indices|idx|classes)", (*LONGS, *FLOATS[:2], *NUMBERS[:2])),
    (r"(\w+_)?masks?", (*BOOLS, *FLOATS, *LONGS[:2])),
    (r"(\w+_)?(images?|imgs?|pixel_values|frames?)", (FLOATS[2], *FLOATS[:2], *FLOATS[3:])),
    (r"(num|n|max|min)_\w+|\w*(dim|size|width|height|depth|length|channels|features|heads|count|steps|epochs|layers)",
     (*NUMBERS, Plain("(8, 8)"))),
    (r"rank|gpu|seed|\w+_rank", (Plain("0"), Plain("1"))),
    (r"(\w+_)?(config|cfg|args|opts?|options|hparams)", (Namespace(), Table())),
    (r"(\w+_)?(path|file|filename|dir|directory|folder|name)", TEXTS),
)  # fmt: skip
_TENSOR = frozenset(dir(torch.Tensor))
_MODULE = frozenset(dir(nn.Module)) - _TENSOR
_OF_BOTH = frozenset(dir(nn.Module)) & _TENSOR
_LARGE, _SMALL = 16, 8
_LONG_NAME = 5
_NOT_MEANT = frozenset({"torch", "builtins", "typing"})
MOST = 40
"""So many candidates of a parameter are considered."""


def hints(function: Callable[..., Any], bound: bool = False) -> list[tuple[Hint, inspect.Parameter]]:
    """The parameters of a function, without the first one where that is bound; none where Python does not know them."""
    try:
        found = [*inspect.signature(function).parameters.values()][bound:]
    except (TypeError, ValueError):
        return []
    known = _annotations(function)
    used = usages(function)
    return [
        (Hint(one.name, known.get(one.name) or _stated(one) or _namesake(one.name, function), used.get(one.name)), one)
        for one in found
        if one.kind is not one.VAR_KEYWORD
    ]


def _namesake(name: str, function: Callable[..., Any]) -> type | None:
    """The class that a parameter is named after: of those that the function's module knows, the one most like it.

    A `config` is a `NetConfig`, in a module that has such a class.
    """
    meant = name.replace("_", "")
    own = getattr(function, "__qualname__", "")
    names = vars(sys.modules.get(getattr(function, "__module__", None) or "", types))
    found = [one for one in names.values() if isinstance(one, type) and one.__name__.lower().endswith(meant)]
    found = [one for one in found if len(meant) >= _LONG_NAME and one.__module__.partition(".")[0] not in _NOT_MEANT]
    return max(found, key=lambda one: _shared(one.__name__, own), default=None)


def _shared(one: str, other: str) -> int:
    """With how many characters both begin."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def _stated(parameter: inspect.Parameter) -> Any:
    return None if parameter.annotation is parameter.empty else parameter.annotation


def _annotations(function: Callable[..., Any]) -> dict[str, Any]:
    target = function.__init__ if isinstance(function, type) else function  # type: ignore[misc]  # of the class itself
    try:
        return typing.get_type_hints(target)
    except Exception:  # names that are only there for type checkers
        return {}


def candidates(hint: Hint, default: Any = inspect.Parameter.empty) -> list[Value]:
    """Values that may be meant, the likely ones first."""
    found: dict[str, Value] = {}
    for value in _likely(hint, default):
        inside = value.children()
        found.setdefault(f"{type(value).__name__} {inside!r}" if inside else repr(value), value)
    return list(found.values())[:MOST]


def _likely(hint: Hint, default: Any) -> Iterator[Value]:
    annotated = list(by_annotation(hint.annotation))
    usage = hint.usage or Usage()
    named = [value for pattern, values in _BY_NAME if re.fullmatch(pattern, hint.name) for value in values]
    yield from (Plain(repr(text)) for text in usage.strings if not any(isinstance(one, Tensor) for one in annotated))
    used = list(_by_usage(usage))
    if annotated and all(isinstance(one, Tensor) for one in annotated):
        # of the tensors first those that the name and the use speak of
        yield from (value for value in (*used, *named) if isinstance(value, Tensor))
        yield from annotated
        return
    if annotated:
        yield from (one for one in named if one in annotated)
    yield from annotated
    if not annotated and any(isinstance(value, (Namespace, Table)) for value in named):
        yield from (value for value in used if isinstance(value, (Namespace, Table)))
    yield from (value for value in used if not isinstance(value, Namespace) or not named)
    yield from _like(default)
    yield from named
    yield from used
    yield from OTHERS


def _like(default: Any) -> Iterator[Value]:
    """Other values of the kind of a default."""
    if isinstance(default, bool):
        yield Plain(repr(not default))
    elif isinstance(default, int):
        yield from NUMBERS
    elif isinstance(default, float):
        yield from FRACTIONS


def _by_usage(usage: Usage) -> Iterator[Value]:
    attributes = usage.attributes
    if usage.counted:
        yield from NUMBERS
    for rank in usage.ranks:
        yield from (replace(value, shape=_shape(rank)) for value in (FLOATS[0], LONGS[0]))
    if usage.keys:
        yield Table(tuple(Hint(name, None, inner) for name, inner in usage.keys.items()))
    if usage.iterated > 1:
        yield from LOADERS
    foreign = [name for name in attributes if name not in _TENSOR and name not in _MODULE]
    if foreign:
        yield Namespace(tuple(Hint(name, None, inner) for name, inner in attributes.items()))
    elif _MODULE & attributes.keys() or (usage.called and not attributes.keys() - _OF_BOTH):
        yield from MODULES
        yield from FUNCTIONS
    elif attributes:
        yield from FLOATS
        yield from LONGS
    if usage.items:
        yield Items(tuple(Hint(str(number)) for number in range(usage.items)), is_list=False)
    if usage.iterated:
        yield from LISTS[:2]
    if usage.indexes:
        yield from (*LONGS, *NUMBERS[-2:-1], *TEXTS)


def _shape(rank: int) -> tuple[int, ...]:
    return (2, 3, 8, 8, 8)[:rank] if rank < 6 else (2,) * rank


def by_annotation(annotation: Any) -> Iterator[Value]:
    """Values of a type, as far as the annotation says one."""
    if annotation is None or annotation is Any:
        return
    if annotation is type(None):
        yield NOTHING
        return
    if isinstance(annotation, str):
        yield from _by_text(annotation)
        return
    origin = typing.get_origin(annotation)
    if origin is None and isinstance(annotation, type):
        yield from _by_type(annotation)
    elif origin is not None:
        yield from _by_origin(origin, typing.get_args(annotation))


def _by_origin(origin: Any, inner: tuple[Any, ...]) -> Iterator[Value]:
    """Values of a type with parameters."""
    if origin in (typing.Union, types.UnionType):
        for part in sorted(inner, key=lambda one: one is type(None)):
            yield from by_annotation(part)
    elif origin is typing.Annotated:
        yield from by_annotation(inner[0])
    elif origin is typing.Literal:
        yield from (Plain(repr(one)) for one in inner)
    elif origin is tuple:
        parts = inner[:1] * 2 if len(inner) == 2 and inner[1] is Ellipsis else inner
        yield Items(tuple(Hint(str(number), part) for number, part in enumerate(parts)), is_list=False)
    elif isinstance(origin, type) and issubclass(origin, dict):
        yield Table()
        yield Table((Hint("x", inner[1] if len(inner) == 2 else None),))
    elif isinstance(origin, type) and issubclass(origin, Iterable) and inner:
        yield Items((Hint("0", inner[0]),))
        yield Items((Hint("0", inner[0]), Hint("1", inner[0])))
    elif callable(origin):
        yield from FUNCTIONS


_TYPES: tuple[tuple[type, tuple[Value, ...]], ...] = (
    (bool, FLAGS), (int, NUMBERS), (float, FRACTIONS), (str, TEXTS), (torch.device, DEVICES),
    (torch.Tensor, TENSORS), (torch.dtype, (Plain("torch.float32"),)), (torch.Generator, ()), (dict, (Table(),)),
    (list, LISTS), (tuple, LISTS[2:4]),
)  # fmt: skip


def _by_type(annotation: type) -> Iterator[Value]:
    for known, values in _TYPES:
        if annotation is known or (known is torch.Tensor and issubclass(annotation, known)):
            yield from values
            return
    if annotation is nn.Module:
        yield from MODULES
    elif issubclass(annotation, torch.optim.Optimizer):
        yield from OPTIMIZERS
    elif issubclass(annotation, torch.utils.data.DataLoader):
        yield from LOADERS
    elif annotation is torch.utils.data.Dataset:
        yield from DATASETS
    elif issubclass(annotation, enum.Enum):
        yield from (
            Plain(f"{annotation.__name__}.{one.name}", (f"from {annotation.__module__} import {annotation.__name__}",))
            for one in annotation
        )
    elif annotation is not object and annotation.__module__ != "builtins":
        yield from ARRAYS if annotation.__name__ == "ndarray" else instances(annotation)


def instances(made: type) -> Iterator[Value]:
    """Objects of a class: with small numbers in the place of large defaults, and with the defaults."""
    known = hints(made)
    name = made.__qualname__
    if "<locals>" in name or made.__module__ == "typing":
        return
    wanted = tuple(
        hint for hint, one in known if one.default is one.empty and one.kind is not inspect.Parameter.VAR_POSITIONAL
    )
    defaults = tuple((hint, one.default) for hint, one in known if one.default is not one.empty)
    numbers = {one.name: one.default for _, one in known if type(one.default) is int}
    is_module, takes_more = issubclass(made, nn.Module), _takes_more(made)
    if any(number > _LARGE for number in numbers.values()):
        small = tuple((one, min(number, _SMALL)) for one, number in numbers.items() if number > _SMALL)
        yield Instance(made.__module__, name, wanted, small, is_module, takes_more, defaults)
    yield Instance(made.__module__, name, wanted, (), is_module, takes_more, defaults)


def _takes_more(made: type) -> bool:
    try:
        known = inspect.signature(made).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(one.kind is one.VAR_KEYWORD for one in known)


_WORDS: tuple[tuple[str, tuple[Value, ...]], ...] = (
    (r"\bTensor\b", TENSORS), (r"\bint\b", NUMBERS), (r"\bfloat\b", FRACTIONS), (r"\bbool\b", FLAGS),
    (r"\bModule\b", MODULES), (r"\bdevice\b", DEVICES), (r"\bstr\b", TEXTS), (r"\bDataLoader\b", LOADERS),
    (r"\bndarray\b", ARRAYS), (r"\bOptimizer\b", OPTIMIZERS), (r"\bDataset\b", DATASETS),
)  # fmt: skip


def _by_text(annotation: str) -> Iterator[Value]:
    """Values of a type of which only the text is known."""
    for pattern, values in _WORDS:
        if re.search(pattern, annotation):
            yield from values
