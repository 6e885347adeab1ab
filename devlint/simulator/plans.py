"""What has to be known of each aten operation to run it on simulated tensors, looked up once."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

Rule = Literal["any", "scalars", "same"]
"""Which tensors of another device an operation takes: any (it checks for itself or not at all), 0-dim ones on the host
only (what goes through TensorIterator), or none."""


@dataclass(slots=True)
class Plan:
    """One operation: its name without namespace and overload, and how its result relates to its arguments."""

    name: str
    qualified: str
    """With its namespace, without its overload: ``aten::add``."""
    parameters: tuple[str, ...]
    rule: Rule
    composite: bool
    """It is made of other operations, which are to run instead."""
    written: tuple[tuple[int, str], ...]
    """Position and name of the arguments that it writes and returns."""
    changes_shape: bool
    has_device: bool


def make(op: Any) -> Plan:
    """The plan of an operation (``torch.ops.aten.add.Tensor``), from its schema and torch's declaration of it."""
    schema = op._schema
    namespace, _, name = schema.name.partition("::")
    arguments = schema.arguments
    returned = len(schema.returns)
    written = tuple(
        (position, argument.name)
        for position, argument in enumerate(arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    )
    aliased = [r for r in schema.returns if r.alias_info is not None and r.alias_info.is_write]
    return Plan(
        name=name,
        qualified=schema.name,
        parameters=tuple(argument.name for argument in arguments),
        rule=_rule(op, namespace, name, schema.overload_name),
        composite=op._can_decompose() if hasattr(op, "_can_decompose") else False,
        written=written if returned and len(aliased) == returned else (),
        changes_shape=torch.Tag.inplace_view in op.tags or any(argument.is_out for argument in arguments),
        has_device=any(argument.name == "device" for argument in arguments),
    )


def _rule(op: Any, namespace: str, name: str, overload: str) -> Rule:
    if namespace != "aten":
        return "any"
    declared = declarations()
    full = f"{name}.{overload}" if overload else name
    entry = declared.get(full)
    if entry is not None and entry == "same":
        return "same"
    if entry == "unchecked" or torch.Tag.pointwise in op.tags:
        return "scalars"
    return "scalars" if name.startswith("_foreach") else "same"


@functools.cache
def declarations() -> dict[str, str]:
    """How torch declares its operations: ``same`` (the generated code checks devices), ``unchecked``, ``composite``.

    Read from ``native_functions.yaml``, which comes with torch; empty where it is missing.  By name with overload.
    """
    import torchgen  # type: ignore[import-untyped]  # it comes with torch, untyped

    path = Path(torchgen.__file__).parent / "packaged" / "ATen" / "native" / "native_functions.yaml"
    if not path.is_file():
        return {}
    result: dict[str, str] = {}
    for block in re.split(r"(?m)^- func: ", path.read_text(encoding="utf-8"))[1:]:
        name = block[: block.index("(")]
        if re.search(r"(?m)^  device_check: NoCheck", block):
            result[name] = "unchecked"
        elif re.search(r"(?m)^    [\w, ]*\bCUDA\b[\w, ]*:|^  structured_delegate:", block):
            result[name] = "same"
        else:
            result[name] = "composite"
    return result
