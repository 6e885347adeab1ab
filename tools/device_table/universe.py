"""Which functions the table describes: the public functions that take or make tensors, by the name a user writes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.overrides
import torch.signal.windows
import torch.utils._device
from torch import nn

# What these namespaces hold besides functions on tensors: the compiler, the JIT, the state of the process.
_NOT_OPERATIONS = frozenset(
    {
        "are_deterministic_algorithms_enabled",
        "clear_autocast_cache",
        "compile",
        "cond",
        "fork",
        "hsmm",
        "import_ir_module",
        "import_ir_module_from_buffer",
        "init_num_threads",
        "merge_type_from_type_comment",
        "parse_ir",
        "parse_schema",
        "parse_type_comment",
        "saddmm",
        "thread_safe_generator",
        "unify_type_list",
        "use_deterministic_algorithms",
        "vmap",
        "wait",
    }
)
_NOT_OPERATION_PREFIXES = (
    "_",
    "autocast",
    "cudnn_",
    "fbgemm_",
    "get_",
    "is_anomaly",
    "is_autocast",
    "is_deterministic",
    "is_grad",
    "is_inference_mode",
    "is_vulkan",
    "is_warn",
    "miopen_",
    "mkldnn_",
    "quantized_",
    "set_",
    "sym_",
)
# Removed from torch (they only raise), or added by the stand-in device of `fake`.
_NOT_METHODS = frozenset({"eig", "gpu", "is_gpu", "lstsq", "reinforce", "solve", "symeig"})
_NOT_IN_MODULE = frozenset({"Optional", "Tensor", "common_args", "sparse_support_notes"})

_RNN_UTILITIES = (
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
)
_GRADIENT_UTILITIES = (
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
    "parameters_to_vector",
)

# Where aten keeps the functions of a namespace: torch.linalg.inv is aten::linalg_inv.
_ATEN_PREFIXES = {"torch.linalg": "linalg_", "torch.fft": "fft_", "torch.special": "special_"}


def aten_name(name: str) -> str:
    """The operator's name in aten, were there one: `torch.linalg.inv` → `linalg_inv`."""
    namespace, short = name.rsplit(".", 1)
    return _ATEN_PREFIXES.get(namespace, "") + short


def universe() -> dict[str, Any]:
    """Every function of the table by name, in a fixed order. Attributes of tensors (`torch.Tensor.T`) count."""
    functional = nn.functional
    testing = torch.overrides.get_testing_overrides()
    names: dict[str, Any] = {}
    for namespace, owner, members in (
        ("torch", torch, _torch_functions()),
        ("torch.Tensor", torch.Tensor, (n for n in dir(torch.Tensor) if n not in _NOT_METHODS)),
        (
            "torch.nn.functional",
            functional,
            (n for n in _functions_of(functional) if n in ("tanh", "sigmoid") or getattr(functional, n) in testing),
        ),
        ("torch.linalg", torch.linalg, _functions_of(torch.linalg)),
        ("torch.fft", torch.fft, _functions_of(torch.fft)),
        ("torch.special", torch.special, _functions_of(torch.special)),
        ("torch.signal.windows", torch.signal.windows, torch.signal.windows.__all__),
        ("torch.nn.utils.rnn", nn.utils.rnn, _RNN_UTILITIES),
        ("torch.nn.utils", nn.utils, _GRADIENT_UTILITIES),
        ("torch.nn.init", nn.init, (n for n in dir(nn.init) if n.endswith("_"))),
    ):
        names.update(_public(namespace, owner, members))
    return names


def device_constructors() -> list[str]:
    """The functions that a default device (`with torch.device(...)`) reaches, as torch itself lists them."""
    public = {"torch._C._fft.fft_": "torch.fft."}
    found = []
    for function in torch.utils._device._device_constructors():
        name = f"{getattr(function, '__module__', None) or 'torch'}.{function.__name__}"
        for private, spelled in public.items():
            name = name.replace(private, spelled)
        found.append(name)
    return sorted(found)


def _public(namespace: str, owner: object, members: Iterable[str]) -> dict[str, Any]:
    return {
        f"{namespace}.{member}": getattr(owner, member)
        for member in sorted(members)
        if not member.startswith("_") and hasattr(owner, member)
    }


def _functions_of(module: object) -> list[str]:
    return [
        name
        for name, value in vars(module).items()
        if callable(value) and not inspect.isclass(value) and name not in _NOT_IN_MODULE
    ]


def _torch_functions() -> list[str]:
    """The functions of the `torch` namespace that work on tensors or make them."""
    overridable: dict[Any, list[Callable[..., Any]]] = torch.overrides.get_overridable_functions()
    known = {
        getattr(function, "__name__", None)
        for owner in (torch, torch.functional)
        for function in overridable.get(owner, [])
    }
    unhooked = torch.overrides.get_ignored_functions()
    constructors = torch.utils._device._device_constructors()

    def works_on_tensors(name: str, value: Any) -> bool:
        return name in known or value in unhooked or value in constructors or hasattr(torch._C._VariableFunctions, name)

    return [
        name
        for name in _functions_of(torch)
        if name not in _NOT_OPERATIONS
        and not name.startswith(_NOT_OPERATION_PREFIXES)
        and getattr(getattr(torch, name), "__module__", "") not in ("torch.jit", "torch.serialization")
        and works_on_tensors(name, getattr(torch, name))
    ]
