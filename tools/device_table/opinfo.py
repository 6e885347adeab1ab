"""Calls from torch's own test suite: its OpInfos know valid inputs for most of the functions."""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch.testing._internal.common_methods_invocations import op_db

from tools.device_table.fake import Call

_MOST_SAMPLES = 10
_SAMPLES_LOOKED_AT = 200
_PREFERRED_TYPES = (torch.float32, torch.int64, torch.bool, torch.complex64)


def opinfo_calls(functions: dict[str, Any]) -> Iterator[tuple[str, Call]]:
    """Every function's calls that its OpInfo, or that of an alias, has samples for."""
    names_of: dict[int, list[str]] = defaultdict(list)
    for name, function in functions.items():
        names_of[id(function)].append(name)
    for info in op_db:
        variants = {name: variant for name, variant in _variants(info, names_of) if name in functions}
        if not variants:
            continue
        samples = _samples(info)
        for name, variant in variants.items():
            for sample in samples:
                yield name, Call(variant, (sample.input, *sample.args), dict(sample.kwargs))


def _variants(info: Any, names_of: dict[int, list[str]]) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The functions that one OpInfo's samples fit, later ones more exact than earlier ones."""
    yield f"torch.{info.name}", info.op
    for name in names_of[id(info.op)]:
        yield name, info.op
    for form in (info, *info.aliases):
        for method in (form.inplace_variant, form.method_variant):
            if method is not None:
                yield f"torch.Tensor.{getattr(method, '__name__', '')}", method
    for alias in info.aliases:
        for name in names_of[id(alias.op)]:
            yield name, alias.op


def _samples(info: Any) -> list[Any]:
    """A few samples: first those that differ in which arguments are tensors, then in dimensions and types."""
    kind = next((dtype for dtype in _PREFERRED_TYPES if dtype in info.dtypes), None)
    kind = kind or min(info.dtypes, key=str, default=torch.float32)
    random.seed(0)
    torch.manual_seed(0)
    try:
        samples = list(itertools.islice(info.sample_inputs("cpu", kind, requires_grad=False), _SAMPLES_LOOKED_AT))
    except Exception:  # some samples need a library or a device that is not there
        return []
    distinct: dict[Hashable, Any] = {}
    for kind_of in (_tensors_of, _shape_of):
        for sample in samples:
            distinct.setdefault(kind_of(sample), sample)
    different = {id(sample): sample for sample in distinct.values()}
    return list(different.values())[:_MOST_SAMPLES]


def _tensors_of(sample: Any) -> Hashable:
    named = {**dict(enumerate((sample.input, *sample.args))), **sample.kwargs}
    return frozenset(name for name, value in named.items() if _has_tensor(value))


def _has_tensor(value: object) -> bool:
    return any(isinstance(leaf, torch.Tensor) for leaf in pytree.tree_leaves(value))


def _shape_of(sample: Any) -> Hashable:
    leaves = pytree.tree_leaves((sample.input, sample.args, sample.kwargs))
    return tuple(leaf.dim() if isinstance(leaf, torch.Tensor) else type(leaf).__name__ for leaf in leaves)
