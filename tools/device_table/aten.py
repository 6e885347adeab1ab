"""What torch's own declarations say: operator schemas, their tags, their CUDA kernels' device checks, the docs."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torchgen  # type: ignore[import-untyped]
from torchgen.gen import parse_native_yaml  # type: ignore[import-untyped]
from torchgen.model import DispatchKey, SchemaKind  # type: ignore[import-untyped]

from tools.device_table.signatures import declared_parameters, schemas
from tools.device_table.universe import aten_name

_DATA_DEPENDENT = frozenset({"data_dependent_output", "dynamic_output_shape"})
_DOCUMENTED_SYNC = re.compile(
    r"synchroni[sz]es? (that|the) device with the CPU|causes? (a )?host-device sync"
    r"|host-device synchroni[sz]ation|synchronizes that device"
)


class Declared(NamedTuple):
    """What a function's schemas alone say."""

    rule: str
    waits: bool


def declared(name: str) -> Declared | None:
    """The rule that follows from the schemas; None where there is no operator of that name."""
    found = schemas(name)
    if not found:
        return None
    inputs = [argument for schema in found for argument in schema.arguments if not argument.is_out]
    takes_tensors = any("Tensor" in str(argument.type) for argument in inputs)
    takes_device = any(argument.name == "device" for argument in inputs)
    results = {str(value.type) for schema in found for value in schema.returns}
    if not any("Tensor" in result for result in results):
        rule = "python" if results else "none"
    elif takes_tensors:
        rule = "like_input_or_kwarg" if takes_device else "same_as_input"
    else:
        rule = "default_or_kwarg" if takes_device else "default"
    return Declared(rule, bool(_tags(name) & _DATA_DEPENDENT))


def takes_device(name: str, function: Any) -> bool:
    """Whether `device=` is among the parameters, by its Python signature or by a schema."""
    code = getattr(function, "__code__", None)
    if code is not None and "device" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
        return True
    if "device" in (declared_parameters(function) or () if callable(function) else ()):
        return True
    return any(argument.name == "device" for schema in schemas(name) for argument in schema.arguments)


def documents_sync(name: str, function: Any) -> bool:
    """Whether the documentation, or for a method that of its function, says that it waits for the device."""
    texts = [getattr(function, "__doc__", None)]
    namespace, short = name.rsplit(".", 1)
    if namespace == "torch.Tensor" and short != "to":
        texts += [getattr(getattr(owner, short, None), "__doc__", None) for owner in (torch, torch.linalg)]
    return any(_DOCUMENTED_SYNC.search(text) for text in texts if text)


def device_check(name: str) -> str:
    """`ExactSame`, `NoCheck` or `mixed` for what the operator's CUDA kernels check; `composite` without a kernel."""
    aten = aten_name(name)
    checks = _device_checks()
    found = checks.get(aten) or checks.get(aten.removesuffix("_")) or set()
    return next(iter(found)) if len(found) == 1 else "mixed" if found else "composite"


def _tags(name: str) -> set[str]:
    packet = getattr(torch.ops.aten, aten_name(name), None)
    if packet is None:
        return set()
    return {tag.name for overload in packet.overloads() for tag in getattr(packet, overload).tags}


@cache
def _device_checks() -> dict[str, set[str]]:
    """The device checks of the CUDA kernels by operator, from the declarations that torch is built from.

    The variants of an operator that take one tensor only, beside numbers, have nothing to check.
    """
    folder = Path(torchgen.__file__).parent / "packaged/ATen/native"
    parsed = parse_native_yaml(str(folder / "native_functions.yaml"), str(folder / "tags.yaml"))
    by_name = {str(function.func.name): function for function in parsed.native_functions}
    kernels = parsed.backend_indices[DispatchKey.CUDA]
    checks: dict[str, dict[bool, set[str]]] = {}
    for function in parsed.native_functions:
        kernel_of = by_name[str(function.structured_delegate)] if function.structured_delegate else function
        if kernels.has_kernel(kernel_of):
            tensors = [argument for argument in function.func.arguments.flat_non_out if argument.type.is_tensor_like()]
            several = len(tensors) > 1 and function.func.kind() is not SchemaKind.out
            known = checks.setdefault(str(function.func.name.name), {})
            known.setdefault(several, set()).add(function.device_check.name)
    return {name: known.get(True) or known[False] for name, known in checks.items()}
