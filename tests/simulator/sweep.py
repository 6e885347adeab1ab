"""Holds the simulated device against the host over torch's own list of operations and their samples.

    python -m tests.simulator.sweep             every operation, its first samples
    python -m tests.simulator.sweep --part 8    every eighth operation

Results and gradients have to equal the host's, and an argument left on the host, or a tensor of the host given for
the result (`out=`), has to be refused where CUDA refuses it.  What CUDA refuses is taken from the table of the static
wing (`devlint/flow/catalog/data/torch_table.json`), made another way.  Prints one line for each difference and a
summary as JSON.
"""

from __future__ import annotations

import argparse
import functools
import json
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

import devlint.simulator
from devlint.simulator import backend

devlint.simulator.install()
DEVICE = torch.device("cuda", 0)

NOT_SIMULATED = re.compile(r"quantized|nested|jagged|_c10d|to_mkldnn")
"""Operations on what the simulated device does not have."""

TABLE = Path(__file__).resolve().parents[2] / "devlint" / "flow" / "catalog" / "data" / "torch_table.json"

DIFFERENT = {
    "tensor_split": "the sample's indices have to stay on the host, as on CUDA",
    "sparse.mm": "its reduction has kernels for the CPU only",
    "prod": "torch computes its gradient in another way for tensors of a subclass, equal up to rounding",
}
"""Operations that are known to differ, and why."""

FILL_OTHERS = {
    "lu": "torch copies its result into what is given",
    "linspace": "its numbers are read, and what is given is filled with them",
    "logspace": "its numbers are read, and what is given is filled with them",
}
"""Operations on tensors of a device that write into those of the host, and why."""

NOT_DETERMINED = {"empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted"}
"""Operations whose result is whatever was in memory."""


def _moved(value: Any) -> Any:
    """The sample on the device; leaves stay leaves."""

    def move(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.detach().to(DEVICE).requires_grad_(tensor.requires_grad)

    return pytree.tree_map_only(torch.Tensor, move, value)


def _kept(value: Any) -> Any:
    return pytree.tree_map_only(torch.Tensor, lambda t: t.detach().clone().requires_grad_(t.requires_grad), value)


def _computed(function: Any, sample: Any) -> list[Any]:
    """The tensors in the result, and the gradients of its floating sum, on the host."""
    torch.manual_seed(0)
    out = function(sample.input, *sample.args, **sample.kwargs)
    results = [leaf for leaf in pytree.tree_leaves(out) if isinstance(leaf, torch.Tensor)]
    leaves = [leaf for leaf in pytree.tree_leaves((sample.input, sample.args, sample.kwargs)) if _wants_grad(leaf)]
    used = [r for r in results if r.requires_grad]
    if leaves and used:
        total = sum((r.abs() if r.is_complex() else r).sum() for r in used)
        results += [g for g in torch.autograd.grad(total, leaves, allow_unused=True) if g is not None]
    return results


def _wants_grad(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad


def _host(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().host if isinstance(tensor, backend.SimulatedTensor) else tensor.detach()


def difference(function: Any, sample: Any) -> str:
    """What differs between the device and the host; empty if nothing does, ``skip`` if the host refuses."""
    moved = sample.transform(lambda v: _moved(v) if isinstance(v, torch.Tensor) else v)
    host = sample.transform(lambda v: _kept(v) if isinstance(v, torch.Tensor) else v)
    try:
        expected = _computed(function, host)
    except Exception:
        return "skip"
    try:
        got = _computed(function, moved)
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0][:200] if str(error) else ''}"
    if len(got) != len(expected):
        return f"{len(got)} tensors instead of {len(expected)}"
    for ours, theirs in zip(got, expected, strict=True):
        try:
            torch.testing.assert_close(_host(ours), theirs.detach(), rtol=0, atol=0, equal_nan=True)
        except AssertionError as error:
            return "values: " + str(error).splitlines()[0]
    return ""


def _takes_tensors(sample: Any) -> bool:
    return any(
        isinstance(leaf, torch.Tensor) for leaf in pytree.tree_leaves((sample.input, sample.args, sample.kwargs))
    )


def _samples(op: Any) -> Any:
    both = set(op.dtypes) & set(op.dtypesIfCUDA)
    dtype = next((d for d in (torch.float32, torch.int64, torch.bool, torch.complex64) if d in both), None)
    if dtype is None:
        return
    gradients = op.supports_autograd and dtype.is_floating_point
    try:
        samples = list(op.sample_inputs("cpu", dtype, requires_grad=gradients))
    except Exception:
        return  # needs a package that is not here
    yield from [sample for sample in samples if _takes_tensors(sample)][:2]


def misplaced(op: Any, sample: Any, refused: dict[int, str]) -> Iterator[str]:
    """The positional arguments that CUDA refuses on the host and the simulated device takes, or with another error."""
    values = [sample.input, *sample.args]
    for position, name in refused.items():
        if position >= len(values) or not _leavable(values, position):
            continue
        mixed = [_kept(v) if i == position else _moved(v) for i, v in enumerate(values)]
        try:
            op.op(*mixed, **_moved(sample.kwargs))
        except (RuntimeError, IndexError) as error:
            ours = re.search(r"on the same device|should be the same|device|Device", str(error))
            yield "" if ours else f"{op.full_name}: {name} on the host: {error}"
        else:
            yield f"{op.full_name}: {name} on the host was taken"


def misgiven(op: Any, sample: Any) -> Iterator[str]:
    """Whether the simulated device takes a tensor of the host for its result, or refuses it with another error."""
    sample = sample.transform(lambda v: v.detach() if isinstance(v, torch.Tensor) else v)
    try:
        result = op.op(sample.input, *sample.args, **sample.kwargs)
        given = pytree.tree_map_only(torch.Tensor, torch.zeros_like, result)
        op.op(sample.input, *sample.args, **sample.kwargs, out=given)
    except Exception:
        return  # some samples have arguments that do not go with a result
    try:
        op.op(*_moved([sample.input, *sample.args]), **_moved(sample.kwargs), out=given)
    except RuntimeError as error:
        ours = re.search(r"[Dd]evice|from the 'CUDA' backend", str(error))
        yield "" if ours else f"{op.full_name}: a result on the host: {error}"
    else:
        yield f"{op.full_name}: a result on the host was taken"


def _leavable(values: list[Any], position: int) -> bool:
    """Whether it is a tensor that no rule excepts, and one of several."""
    value = values[position]
    tensors = [leaf for leaf in pytree.tree_leaves(values) if isinstance(leaf, torch.Tensor)]
    full = len(tensors) > 1 and all(tensor.numel() for tensor in tensors)
    return isinstance(value, torch.Tensor) and value.dim() > 0 and full


@functools.cache
def _refused(name: str) -> dict[int, str]:
    """The positions and names of a function's parameters that CUDA refuses on the host."""
    entry = json.loads(TABLE.read_text(encoding="utf-8"))["functions"].get(f"torch.{name}", {})
    refused = entry.get("rejects_cpu", "").split()
    parameters = entry.get("parameters", "").split()
    return {position: name for position, name in enumerate(parameters) if name in refused}


def main() -> int:
    """Compare, print, and return how many differ."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--part", type=int, default=1, help="take every so manieth operation")
    parser.add_argument("--only", default="", help="operations whose name contains this")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_methods_invocations import op_db

    counts: Counter[str] = Counter()
    chosen = [op for op in op_db if options.only in op.full_name and not NOT_SIMULATED.search(op.full_name)]
    for op in chosen[:: options.part]:
        if op.name in NOT_DETERMINED or op.name in DIFFERENT:
            continue
        for sample in _samples(op):
            what = difference(op.op, sample)
            counts[what if what == "skip" else "different" if what else "equal"] += 1
            found = [f"{op.full_name}: {what}"] if what not in ("", "skip") else []
            for what in misplaced(op, sample, {} if op.variant_test_name else _refused(op.name)):
                counts["wrong" if what else "refused"] += 1
                found += [what] if what else []
            for what in misgiven(op, sample) if op.supports_out and op.name not in FILL_OTHERS else ():
                counts["wrong" if what else "results refused"] += 1
                found += [what] if what else []
            for line in found:
                print(line)  # noqa: T201  # the program's output
    print(json.dumps(counts))  # noqa: T201  # the program's output
    return counts["different"] + counts["wrong"]


if __name__ == "__main__":
    raise SystemExit(min(main(), 1))
