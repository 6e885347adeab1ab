"""What has to be known of each aten operation to run it on simulated tensors, looked up once."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch

from devlint.simulator import refusals

Rule = Literal["made of others", "iterator", "exact"]
"""Who looks at the devices: other operations that this one calls; TensorIterator, which takes 0-dim tensors of the host
everywhere; or the code that torch generates around a CUDA kernel, which takes one device only."""


NATIVE = ("mish_backward", "silu_backward", "native_channel_shuffle", "_sparse_compressed_tensor_unsafe")
"""Operations that have kernels for the CPU and CUDA, and are taken apart everywhere else; or that make a tensor in C++
which no other operation gets to see."""

_COMMON = (torch._C.DispatchKey.CompositeExplicitAutograd, torch._C.DispatchKey.CompositeExplicitAutogradNonFunctional)


_OF_CUDA = (torch._C.DispatchKey.CUDA, torch._C.DispatchKey.PrivateUse1)
"""Keys at which `torch.library` registers what is for CUDA: by the key's name, or by that of the type of device."""
_OF_TORCH = ("aten", "c10d")
"""Namespaces whose kernels at these keys are torch's or the simulator's own."""


class Declaration(NamedTuple):
    """What torch says of an operation in ``native_functions.yaml``."""

    rule: Rule
    structured: bool


@dataclass(slots=True)
class Plan:
    """One operation: its name without namespace and overload, and how its result relates to its arguments."""

    name: str
    parameters: tuple[str, ...]
    rule: Rule
    kernel: str
    """The name that the code around the CUDA kernel goes by in torch's messages, such as ``wrapper_CUDA_addmm``."""
    checked: tuple[str, ...]
    """The parameters whose devices that code compares, in its order."""
    implicit: bool
    """Autograd has no formula for it: it is taken apart everywhere."""
    common: Any
    """The dispatch key of its kernel for all devices, made of other operations; ``None`` if it has none."""
    foreign: Any
    """The dispatch key of a kernel for CUDA that a library of the script's has itself; ``None`` if there is none."""
    written: tuple[str, ...]
    """The arguments that it writes."""
    returned: tuple[tuple[int, str], ...]
    """Position and name of those of them that are its result, in order; empty if its result is something else."""
    places: tuple[tuple[int, str], ...]
    """Position and name of the arguments that it writes."""
    view: bool
    """Its result shares memory with an argument."""
    changes_shape: bool
    has_device: bool
    random: bool
    """It draws random numbers."""
    compute: Any
    """What computes it on the host."""


_plans: dict[int, tuple[Plan, Any]] = {}
"""By identity of the operation, which is kept as long: torch computes its hash in Python, for each look-up."""


def of(op: Any) -> Plan:
    """The plan of an operation (``torch.ops.aten.add.Tensor``)."""
    found = _plans.get(id(op))
    if found is None:
        found = _plans[id(op)] = _made(op), op
    return found[0]


def _made(op: Any) -> Plan:
    """A plan, from the schema of the operation and from torch's declaration of it."""
    schema = op._schema
    namespace, _, name = schema.name.partition("::")
    arguments = schema.arguments
    places = {_alias(one): (position, one.name) for position, one in enumerate(arguments) if _writes(one)}
    declared = declarations().get(f"{name}.{schema.overload_name}" if schema.overload_name else name)
    if namespace != "aten" or declared is None:
        declared = Declaration("made of others", False)
    outs = [argument.name for argument in arguments if argument.is_out]
    positional = [argument.name for argument in arguments if not argument.kwarg_only]
    return Plan(
        name=name,
        parameters=tuple(argument.name for argument in arguments),
        rule=declared.rule,
        kernel=_kernel_name(name, schema.overload_name, bool(outs), declared.structured),
        checked=(*outs, *positional),
        implicit=_has_kernel(op, "CompositeImplicitAutograd") and name not in NATIVE,
        common=next((key for key in _COMMON if _has_kernel(op, key.name)), None),
        foreign=next((k for k in _OF_CUDA if namespace not in _OF_TORCH and _has_kernel(op, k.name)), None),
        written=tuple(one.name for one in arguments if _writes(one)),
        returned=tuple(places[_alias(one)] for one in schema.returns) if all(map(_writes, schema.returns)) else (),
        view=any(r.alias_info is not None and not r.alias_info.is_write for r in schema.returns),
        changes_shape=torch.Tag.inplace_view in op.tags or bool(outs),
        has_device=any(argument.name == "device" for argument in arguments),
        random=torch.Tag.nondeterministic_seeded in op.tags,
        places=tuple(places.values()),
        compute=refusals.computing(op._op, name, tuple(places.values())) if namespace == "aten" else op._op,
    )


def is_of_host(op: Any) -> bool:
    """Whether the host has a kernel of its own, which refuses in its own words, for what CUDA makes of others."""
    plan = of(op)
    return plan.common is not None and plan.rule == "made of others" and _has_kernel(op, "CPU")


def _writes(value: Any) -> bool:
    """Whether an operation writes the argument, or returns one that it has written."""
    return value.alias_info is not None and value.alias_info.is_write


def _alias(value: Any) -> frozenset[str]:
    """What the schema calls the memory of an argument or a result."""
    return frozenset(value.alias_info.before_set)


def _has_kernel(op: Any, key: str) -> bool:
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), key))


def _kernel_name(name: str, overload: str, out: bool, structured: bool) -> str:
    """As torchgen's ``wrapper_kernel_sig`` and ``NativeSignature`` make it."""
    base = f"{name}_out" if out else name
    if structured:
        return f"wrapper_CUDA_{base}_{overload}" if overload else f"wrapper_CUDA_{base}"
    return f"wrapper_CUDA_{overload}_{base}"


@functools.cache
def declarations() -> dict[str, Declaration]:
    """How torch declares its operations, by name with overload; from the file that comes with it, else empty."""
    import torchgen  # type: ignore[import-untyped]  # it comes with torch, untyped

    path = Path(torchgen.__file__).parent / "packaged" / "ATen" / "native" / "native_functions.yaml"
    if not path.is_file():
        return {}
    result = {}
    for block in re.split(r"(?m)^- func: ", path.read_text(encoding="utf-8"))[1:]:
        structured = re.search(r"(?m)^  structured(: True|_delegate:)", block) is not None
        rule: Rule = "made of others"
        if structured or re.search(r"(?m)^    [\w, ]*\bCUDA\b[\w, ]*:", block):
            rule = "iterator" if "\n  device_check: NoCheck" in block else "exact"
        result[block[: block.index("(")]] = Declaration(rule, structured)
    return result
