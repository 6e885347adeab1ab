"""Calls made up from a function's schema or signature, for functions without an OpInfo."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.overrides

from tools.device_table.fake import Call
from tools.device_table.signatures import schemas

_KINDS = ("float", "int", "bool")
_SHAPES: tuple[tuple[int, ...], ...] = ((3, 3), (3,), (2, 3, 3), (), (1, 3, 8, 8), (1, 3, 4, 4, 4))

_DIMENSIONS = frozenset({"dim", "dim0", "dims", "axis", "start"})
_TENSOR_LISTS = frozenset({"tensors", "parameters", "sequences", "tensor1s"})
_NUMBERS = frozenset({"p", "eps", "lambd", "max_norm", "norm_type", "clip_value", "std", "mean", "gain", "val"})
_SIZES = frozenset({"output_size", "normalized_shape", "size", "shape"})


def known_calls(name: str, function: Any) -> list[Call]:
    """Calls of functions which torch's test suite calls through a wrapper that takes its arguments in another order."""
    matrix = torch.full((3, 3), 0.5)
    arguments: dict[str, tuple[Any, ...]] = {
        "torch.einsum": ("ij,jk->ik", matrix, matrix),
        "torch.nn.functional.embedding": (torch.ones(2, dtype=torch.int64), matrix),
        "torch.nn.functional.embedding_bag": (torch.ones((2, 2), dtype=torch.int64), matrix),
    }
    return [Call(function, arguments[name])] if name in arguments else []


def schema_calls(name: str, function: Any) -> Iterator[list[Call]]:
    """For each aten overload the calls to try, of which the first that works is enough."""
    is_method = name.startswith("torch.Tensor.")
    if not callable(function):
        return
    for schema in schemas(name):
        types = {str(argument.type) for argument in schema.arguments}
        if any(argument.is_out or argument.name == "out" for argument in schema.arguments):
            continue
        if any("Dimname" in kind for kind in types):
            continue
        calls = []
        for kind, shape in itertools.product(_KINDS, _SHAPES[:5]):
            call = _schema_call(function, schema, kind, shape)
            if call is None or (is_method and not (call.arguments and isinstance(call.arguments[0], torch.Tensor))):
                break
            calls.append(call)
        yield calls


def signature_calls(function: Any) -> list[Call]:
    """Calls that fit the Python signature; a parameter's name says what it takes."""
    signature = _signature(function)
    if signature is None:
        return []
    calls = []
    for kind, shape in itertools.product(_KINDS, _SHAPES):
        arguments: list[Any] = []
        for parameter in signature.parameters.values():
            if parameter.kind is parameter.VAR_POSITIONAL:
                arguments += [_tensor(kind, shape), _tensor(kind, shape)]
            elif parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD:
                arguments.append(_value_for(parameter.name, kind, shape))
        calls.append(Call(function, tuple(arguments)))
    return calls


def _tensor(kind: str, shape: tuple[int, ...]) -> torch.Tensor:
    if kind == "float":
        return torch.full(shape, 0.5)
    return torch.ones(shape, dtype=torch.int64 if kind == "int" else torch.bool)


def _schema_call(function: Callable[..., Any], schema: Any, kind: str, shape: tuple[int, ...]) -> Call | None:
    """A call with a value for every argument that needs one; None if there is no value for some type."""
    arguments: list[Any] = []
    keywords: dict[str, Any] = {}
    for argument in schema.arguments:
        if argument.has_default_value():
            continue
        value = _value_of_type(argument, kind, shape)
        if value is NotImplemented:
            return None
        if argument.kwarg_only:
            keywords[argument.name] = value
        else:
            arguments.append(value)
    return Call(function, tuple(arguments), keywords)


def _value_of_type(argument: Any, kind: str, shape: tuple[int, ...]) -> Any:
    declared = str(argument.type)
    if declared == "Tensor":
        return _tensor(kind, shape)
    if declared.startswith(("List[Tensor]", "Optional[List[Tensor]")):
        return [_tensor(kind, shape), _tensor(kind, shape)]
    if declared.startswith("Optional") or "NoneType" in declared:
        return None
    if declared.startswith("List[int]"):
        return _integers(argument.name, shape)
    if declared == "int":
        return 0 if argument.name in _DIMENSIONS else 1
    simple = {"float": 0.5, "bool": False, "number": 1, "Scalar": 1, "str": "mean"}
    return [0.5] if declared.startswith("List[float]") else simple.get(declared, NotImplemented)


def _integers(name: str, shape: tuple[int, ...]) -> list[int]:
    if name in _DIMENSIONS:
        return [0, 1]
    return (list(shape) or [1]) if name == "size" else [1] * max(1, len(shape))


def _value_for(name: str, kind: str, shape: tuple[int, ...]) -> Any:
    if name in _TENSOR_LISTS:
        return [_tensor(kind, shape), _tensor(kind, shape)]
    if name in _DIMENSIONS:
        return 0
    if name in _NUMBERS:
        return 0.5
    if name in _SIZES:
        return shape
    named = {"kernel_size": 2, "mode": "fan_in", "nonlinearity": "fan_in"}
    return named.get(name, _tensor(kind, shape))


def _signature(function: Any) -> inspect.Signature | None:
    """The function's own signature, or that of the dummy by which torch tests overriding it."""
    candidates = [function]
    if callable(function) and function in torch.overrides.get_testing_overrides():
        candidates.append(torch.overrides.get_testing_overrides()[function])
    for candidate in candidates:
        try:
            return inspect.signature(candidate)
        except (TypeError, ValueError):
            continue
    return None
