"""What is known about torch's own functions and modules: where results live, what meets whom, what blocks.

The facts are data, derived from torch itself by `tools/make_device_table.py` and stamped with torch's version; torch
is not needed to read them.

Names are spelled as a user's name resolves: `torch.add`, `torch.Tensor.add_`, `torch.nn.functional.relu`,
`torch.linalg.inv`, `torch.nn.Linear`.
"""

from __future__ import annotations

import json
import os
from functools import cache
from typing import Any, Literal

from devlint._about import PACKAGE
from devlint.immutable import immutable

Sync = Literal["always", "sometimes"]
DeviceCheck = Literal["ExactSame", "NoCheck", "composite", "mixed"]


@immutable(frozen=True, slots=True)
class Function:
    """One function of torch, method of `torch.Tensor` or attribute of it.

    `rule` says where the result lives:

    - `same_as_input`: with the tensors put in;
    - `default_or_kwarg`: on `device=`, else the default device;
    - `like_input_or_kwarg`: on `device=`, else with the tensor put in (`zeros_like`, `new_zeros`);
    - `data_or_default`: as the former for tensors, on the default device for all other data (`torch.tensor`);
    - `arg_tensor_or_cpu`: with the tensors put in, on the CPU (or `device=`) if there are none (`torch.normal`);
    - `cpu`, `cpu-pinned`, `cpu-only`: on the CPU, in pinned memory, or an error for tensors elsewhere;
    - `mover:arg`, `mover:other`, `mover:legacy-type`, `mover:cpu`, `mover:cuda`, ...: moves, as `.to(...)`,
      `.type_as(other)`, `.type("torch.cuda.FloatTensor")`, `.cpu()`, `.cuda()` do;
    - `grad_device`: with the first gradient; `tuple:same_as_input,cpu`: a tuple of one of each;
    - `producer`: wherever the producer of the DLPack capsule has it;
    - `python`, `numpy`, `none`: no tensor, but a Python value, an array, or nothing.
    """

    name: str
    rule: str
    parameters: tuple[str, ...] = ()
    """Positional parameters in order, `self` first for methods; a last `*tensors` takes all that follow."""
    rejects_cpu: frozenset[str] = frozenset()
    """Parameters for which a CPU tensor of one or more dimensions, among accelerator tensors, raises. For a list
    of tensors (`torch.cat`): any one of the list. What is not named here is not known to be accepted."""
    accepts_cpu: frozenset[str] = frozenset()
    """Parameters for which a CPU tensor of any dimension is fine whatever the device of the others."""
    accepts_cpu_scalar: bool = True
    """Whether a 0-dim CPU tensor may stand among accelerator tensors. If not, it may still pass: be silent."""
    must_be_cpu: frozenset[str] = frozenset()
    """Parameters which have to be on the CPU if they are tensors."""
    sync: Sync | None = None
    """Whether the host waits for an accelerator: always, or for some arguments."""
    device_check: DeviceCheck = "composite"
    """How the CUDA kernel checks devices: `ExactSame` has no exception for 0-dim tensors, `NoCheck` leaves it to
    TensorIterator, which has; `composite` functions are made of others."""

    def parameter_at(self, position: int) -> str | None:
        """The parameter that the positional argument lands in (`self` is position 0 of a method)."""
        if position < len(self.parameters):
            return self.parameters[position].removeprefix("*")
        if self.parameters and self.parameters[-1].startswith("*"):
            return self.parameters[-1][1:]
        return None


@immutable(frozen=True, slots=True)
class Module:
    """One class of torch.nn."""

    name: str
    has_params: bool = False
    has_buffers: bool = False
    buffer_arguments: frozenset[str] = frozenset()
    """Constructor arguments that become buffers: `weight` and `pos_weight` of losses."""


def function(name: str) -> Function | None:
    """The function of that full name, None if the table does not have it."""
    return _function(name)


def method(name: str) -> Function | None:
    """The method or attribute of `torch.Tensor`: `method("add_")`."""
    return _function("torch.Tensor." + name)


def module(name: str) -> Module | None:
    """The module class of that full name: `module("torch.nn.Linear")`."""
    return _module(name)


def device_constructors() -> frozenset[str]:
    """The functions that a default device (`with torch.device(...)`) reaches, as torch itself lists them."""
    return frozenset(_data()["device_constructors"])


@cache
def host_functions() -> frozenset[str]:
    """What the functions and methods are called that take some argument on the CPU alone."""
    wanting = (name for name, entry in _data()["functions"].items() if "must_be_cpu" in entry)
    return frozenset(name.rpartition(".")[2] for name in wanting)


def module_names() -> frozenset[str]:
    """The names of all module classes of the table."""
    return frozenset(_data()["modules"])


@cache
def _data() -> dict[str, Any]:
    with open(os.path.join(PACKAGE, "flow/catalog/data/torch_table.json"), "rb") as stream:
        table: dict[str, Any] = json.loads(stream.read())
    return table


@cache
def _function(name: str) -> Function | None:
    entry: dict[str, Any] | None = _data()["functions"].get(name)
    if entry is None:
        return None
    check: DeviceCheck = entry.get("device_check", "composite")
    return Function(
        name=name,
        rule=entry.get("rule", "same_as_input"),
        parameters=tuple(entry.get("parameters", "").split()),
        rejects_cpu=_names(entry, "rejects_cpu"),
        accepts_cpu=_names(entry, "accepts_cpu"),
        accepts_cpu_scalar=entry.get("accepts_cpu_scalar", check != "ExactSame"),
        must_be_cpu=_names(entry, "must_be_cpu"),
        sync=entry.get("sync"),
        device_check=check,
    )


@cache
def _module(name: str) -> Module | None:
    entry: dict[str, Any] | None = _data()["modules"].get(name)
    if entry is None:
        return None
    return Module(
        name=name,
        has_params=entry.get("has_params", False),
        has_buffers=entry.get("has_buffers", False),
        buffer_arguments=_names(entry, "buffer_arguments"),
    )


def _names(entry: dict[str, Any], key: str) -> frozenset[str]:
    return frozenset(entry.get(key, "").split())
