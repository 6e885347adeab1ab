"""What has to be known of each aten operation to run it on simulated tensors, looked up once."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from devlint.simulator import refusals
from devlint.simulator.layouts import COMPRESSED

Rule = Literal["made of others", "iterator", "exact"]
"""Who looks at the devices: other operations that this one calls; TensorIterator, which takes 0-dim tensors of the host
everywhere; or the code that torch generates around a CUDA kernel, which takes one device only."""


NATIVE = ("mish_backward", "silu_backward", "native_channel_shuffle", "_sparse_compressed_tensor_unsafe")
"""Operations that have kernels for the CPU and CUDA, and are taken apart everywhere else; or that make a tensor in C++
which no other operation gets to see."""

_COMMON = (torch._C.DispatchKey.CompositeExplicitAutograd, torch._C.DispatchKey.CompositeExplicitAutogradNonFunctional)


_OF_CUDA = (torch._C.DispatchKey.CUDA, torch._C.DispatchKey.PrivateUse1)
"""Keys at which `torch.library` registers what is for CUDA: by the key's name, or by that of the type of device."""
_OF_HOST = ("_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention_for_cpu_backward")
"""Operations for the CPU by which the simulated device computes what CUDA has others for."""
_OF_TORCH = ("aten", "c10d")
"""Namespaces whose kernels at these keys are torch's or the simulator's own."""


KINDS = ("", "Sparse", "SparseCsr")
"""The kinds of tensors that have kernels of their own, as their dispatch keys begin, the least usual one last."""
_KINDS = {torch.sparse_coo: "Sparse", **dict.fromkeys(COMPRESSED, "SparseCsr")}


class Declaration(NamedTuple):
    """What torch says of an operation in ``native_functions.yaml``."""

    kinds: frozenset[str]
    """For which kinds of tensors CUDA has kernels of its own: the beginnings of their dispatch keys."""
    rule: Rule
    """Who looks at the devices in those kernels."""
    structured: bool


_UNDECLARED = Declaration(frozenset(), "exact", structured=False)


@dataclass(slots=True)
class Plan:
    """One operation: its name without namespace and overload, and how its result relates to its arguments."""

    name: str
    parameters: tuple[str, ...]
    rules: dict[str, Rule]
    kernels: dict[str, str]
    """The name that the code around the CUDA kernel goes by in torch's messages, such as ``wrapper_CUDA_addmm``."""
    refused: frozenset[str]
    """The kinds of tensors of which only the host has a kernel: CUDA refuses them.  These three go by kinds of tensors,
    of which ``""`` are dense ones."""
    checked: tuple[str, ...]
    """The parameters whose devices that code compares, in its order."""
    implicit: bool
    """Autograd has no formula for it: it is taken apart everywhere."""
    common: Any
    """The dispatch key of its kernel for all devices, made of other operations; ``None`` if it has none."""
    foreign: Any
    """The dispatch key of a kernel for CUDA that a library of the script's has itself; ``None`` if there is none, or if
    it is compiled and the host has one, too."""
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
        declared = _UNDECLARED
    outs = [argument.name for argument in arguments if argument.is_out]
    positional = [argument.name for argument in arguments if not argument.kwarg_only]
    common = next((key for key in _COMMON if _has_kernel(op, key.name)), None)
    implicit = _has_kernel(op, "CompositeImplicitAutograd") and name not in NATIVE
    only_kernels = declared is not _UNDECLARED and common is None and not implicit and name not in _OF_HOST
    of_host = {kind for kind in KINDS if _has_kernel(op, f"{kind}CPU")} if only_kernels else set()
    return Plan(
        name=name,
        parameters=tuple(argument.name for argument in arguments),
        rules={kind: declared.rule if kind in declared.kinds else "made of others" for kind in KINDS},
        kernels={kind: _kernel_name(kind, name, schema.overload_name, bool(outs), declared) for kind in KINDS},
        refused=frozenset(of_host - declared.kinds),
        checked=(*outs, *positional),
        implicit=implicit,
        common=common,
        foreign=_foreign(op, namespace) if namespace not in _OF_TORCH else None,
        written=tuple(one.name for one in arguments if _writes(one)),
        returned=tuple(places[_alias(one)] for one in schema.returns) if all(map(_writes, schema.returns)) else (),
        view=any(r.alias_info is not None and not r.alias_info.is_write for r in schema.returns),
        changes_shape=torch.Tag.inplace_view in op.tags or bool(outs),
        has_device=any(argument.name == "device" for argument in arguments),
        random=torch.Tag.nondeterministic_seeded in op.tags,
        places=tuple(places.values()),
        compute=refusals.computing(op._op, name, tuple(places.values())) if namespace == "aten" else op._op,
    )


def _foreign(op: Any, namespace: str) -> Any:
    """The key of a library's kernel for CUDA; one in C++ wants a card, and counts only where the host has none."""
    for key in _OF_CUDA:
        written = f"{namespace}/{op._schema.name.partition('::')[2]}"
        names = (written, f"{written}.{op._schema.overload_name}")
        in_python = any(f"{name}/{key.name}" in torch.library._impls for name in names)
        if _has_kernel(op, key.name) and (in_python or not _has_kernel(op, "CPU")):
            return key
    return None


def is_of_host(op: Any) -> bool:
    """Whether the host has a kernel of its own, which refuses in its own words, for what CUDA makes of others."""
    plan = of(op)
    return plan.common is not None and plan.rules[""] == "made of others" and _has_kernel(op, "CPU")


def kind_of(args: Any, kwargs: Any) -> str:
    """The kind of tensors that an operation is chosen by: the least usual one among its arguments."""
    found = {_KINDS.get(leaf.layout, "") for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)}
    return max(found, key=KINDS.index, default="")


def has_cuda_kernel(op: Any, kind: str) -> bool:
    """Whether torch declares that CUDA has a kernel for tensors of that kind, where it declares anything."""
    name = op._schema.name.partition("::")[2]
    declared = declarations().get(f"{name}.{op._schema.overload_name}".removesuffix("."))
    return declared is None or kind in declared.kinds


def _writes(value: Any) -> bool:
    """Whether an operation writes the argument, or returns one that it has written."""
    return value.alias_info is not None and value.alias_info.is_write


def _alias(value: Any) -> frozenset[str]:
    """What the schema calls the memory of an argument or a result."""
    return frozenset(value.alias_info.before_set)


def _has_kernel(op: Any, key: str) -> bool:
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), key))


def _kernel_name(kind: str, name: str, overload: str, out: bool, declared: Declaration) -> str:
    """As torchgen's ``wrapper_kernel_sig`` and ``NativeSignature`` make it."""
    base = f"{name}_out" if out else name
    if declared.structured and not kind:
        return f"wrapper_CUDA_{base}_{overload}" if overload else f"wrapper_CUDA_{base}"
    return f"wrapper_{kind}CUDA_{overload}_{base}"


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
        keys = ", ".join(re.findall(r"(?m)^    ([\w, ]+):", block)).split(", ")
        kinds = {key.removesuffix("CUDA") for key in keys if key.endswith("CUDA")} | ({""} if structured else set())
        rule: Rule = "iterator" if "\n  device_check: NoCheck" in block else "exact"
        result[block[: block.index("(")]] = Declaration(frozenset(kinds), rule, structured)
    return result
