"""The positional parameters of a function, in order and by the names a caller may use.

Most of torch is C++ without a Python signature. Its type stubs, which ship with it, hold every overload.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.overrides

from tools.device_table.universe import aten_name


class Overload(NamedTuple):
    """One way to call a function: its positional parameters, and how many of them may be tensors."""

    parameters: tuple[str, ...]
    tensors: int


def parameters_of(name: str, function: Any) -> tuple[str, ...]:
    """Positional parameters in order, `self` first for methods; a trailing `*name` takes what is left.

    Of several overloads it is the one which takes the most tensors: those are the arguments that the table
    knows something about. `torch.max(input, other)`, not `torch.max(input, dim, keepdim)`.
    """
    if not callable(function):
        return ()
    declared = declared_parameters(function)
    if declared is None and function in _testing_overrides():
        overloads = _stub_overloads(name) or _schema_overloads(name)
        declared = _best(overloads) or declared_parameters(_testing_overrides()[function])
    if declared is None:
        declared = _best(_stub_overloads(name) or _schema_overloads(name))
    declared = declared or ()
    if name.startswith("torch.Tensor."):
        return ("self", *declared[1:])
    return declared


def declared_parameters(function: Callable[..., Any]) -> tuple[str, ...] | None:
    """What Python knows of a signature; None for C++ functions and for those that pass `*args, **kwargs` on."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    kinds = {parameter.kind for parameter in parameters}
    if {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD} <= kinds:
        return None
    names = []
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            names.append("*" + parameter.name)
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
    return tuple(names)


@cache
def _testing_overrides() -> dict[Any, Callable[..., Any]]:
    return dict(torch.overrides.get_testing_overrides())


def _best(overloads: list[Overload]) -> tuple[str, ...] | None:
    """The overload with the most tensors; the earlier one of equals.

    Only deprecated forms, `torch.add(self, alpha, other)`, call a parameter of a function `self`.
    """
    current = [overload for overload in overloads if "self" not in overload.parameters[1:]]
    current = [overload for overload in current if overload.parameters[:1] != ("self",)] or current
    return max(current, key=lambda overload: overload.tensors).parameters if current else None


def _stub_overloads(name: str) -> list[Overload]:
    namespace, short = name.rsplit(".", 1)
    if namespace == "torch.Tensor":
        return _stub("_C/__init__.pyi", "TensorBase").get(short, [])
    if namespace == "torch":
        return _stub("_C/_VariableFunctions.pyi").get(short, [])
    if namespace == "torch.nn.functional":
        for stub in ("nn/functional.pyi", "_C/_nn.pyi", "_C/_VariableFunctions.pyi"):
            if overloads := _stub(stub).get(short):
                return overloads
    return []


@cache
def _stub(path: str, owner: str | None = None) -> dict[str, list[Overload]]:
    """The overloads which a stub file declares, at its top or in the class `owner`."""
    tree = ast.parse((Path(torch.__file__).parent / path).read_text("utf-8"))
    body = tree.body
    if owner is not None:
        body = next(node.body for node in body if isinstance(node, ast.ClassDef) and node.name == owner)
    found: dict[str, list[Overload]] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef):
            found.setdefault(node.name, []).append(_overload(node.args))
    return found


def _overload(arguments: ast.arguments) -> Overload:
    positional = [*arguments.posonlyargs, *arguments.args]
    names = [argument.arg for argument in positional]
    if arguments.vararg is not None:
        names.append("*" + arguments.vararg.arg)
        positional.append(arguments.vararg)
    return Overload(tuple(names), sum(_is_tensor(argument.annotation) for argument in positional))


def _is_tensor(annotation: ast.expr | None) -> bool:
    if annotation is None:
        return False
    return any(
        (isinstance(node, ast.Name) and node.id == "Tensor")
        or (isinstance(node, ast.Attribute) and node.attr == "Tensor")
        for node in ast.walk(annotation)
    )


def schemas(name: str) -> list[Any]:
    """The aten schemas behind a function, none where it has no operator of its name."""
    try:
        return list(torch._C._jit_get_schemas_for_operator("aten::" + aten_name(name)))
    except RuntimeError:
        return []


def _schema_overloads(name: str) -> list[Overload]:
    return [
        Overload(tuple(_positional(schema)), sum("Tensor" in str(argument.type) for argument in schema.arguments))
        for schema in schemas(name)
        if not any("Dimname" in str(argument.type) or argument.is_out for argument in schema.arguments)
    ]


def _positional(schema: Any) -> Iterator[str]:
    for argument in schema.arguments:
        if not argument.kwarg_only:
            yield "input" if argument.name == "self" else argument.name
