"""Derive the dtypes that CUDA takes and the host does not, and the reverse, from the lists of the installed torch.

    python -m tools.make_dtype_table            write devlint/simulator/refusals/dtype_table.json
    python -m tools.make_dtype_table --check    write nothing; fail if the committed table says anything else

torch's own tests (`torch.testing._internal`) say of each function which dtypes it takes on the CPU and on CUDA. Here
the samples of each function run on the simulated device, which tells which aten operations they reach with which
dtypes. An operation refuses a dtype on CUDA if every function that reaches it with that dtype does; it is computed in a
wider dtype if the host refuses it and CUDA takes the function. No accelerator is needed; it takes less than a minute.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import itertools
import json
import random
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch.utils import _pytree as pytree

import devlint.simulator
from devlint.simulator import plans
from devlint.simulator.refusals import dtypes

_MOST_SAMPLES = 6
Key = tuple[str, torch.dtype]


class Pass(NamedTuple):
    """A forward or backward pass over the samples of a function in a dtype."""

    on_host: bool
    on_cuda: bool
    reached: set[Key]
    widened: set[Key]


class Recorder:
    """Notes which operations are computed, and which of them the host computes in a wider dtype only."""

    def __init__(self) -> None:
        self.reached: set[Key] = set()
        self.widened: set[Key] = set()

    def install(self) -> None:
        """Let every plan compute through this recorder, without a table."""
        original = plans.of

        @functools.cache
        def of(op: Any) -> plans.Plan:
            plan = original(op)
            return dataclasses.replace(plan, compute=functools.partial(self.compute, op, plan))

        plans.of = of  # type: ignore[assignment]  # a cached function for another

    def compute(self, op: Any, plan: plans.Plan, *args: Any, **kwargs: Any) -> Any:
        """Compute on the host, in a wider dtype if need be."""
        values = (*args, *kwargs.values())
        dtype = dtypes.dtype_of(values)
        if dtype is None:
            return op(*args, **kwargs)
        key = (dtypes.key_of(plan.name, values), dtype)
        self.reached.add(key)
        try:
            return op(*args, **kwargs)
        except (RuntimeError, IndexError, ValueError):
            try:
                out = dtypes.widened(op, dtype, plan.places, *args, **kwargs)
            except Exception:
                out = None
            if out is None:
                raise
            self.widened.add(key)
            return out

    def take(self) -> tuple[set[Key], set[Key]]:
        """What was noted since the last time."""
        taken = (self.reached, self.widened)
        self.reached, self.widened = set(), set()
        return taken


def passes(info: Any, recorder: Recorder) -> Iterator[Pass]:
    """The passes over the samples of a function (an `OpInfo`), in all dtypes that the CPU or CUDA takes."""
    host, cuda = set(info.dtypes), set(info.dtypesIfCUDA)
    backward = info.supports_autograd and not torch.is_inference_mode_enabled()
    host_back, cuda_back = (set(info.backward_dtypes), set(info.backward_dtypesIfCUDA)) if backward else (set(), set())
    for dtype in sorted(host | cuda, key=str):
        graded = (dtype.is_floating_point or dtype.is_complex) and dtype in host_back | cuda_back
        recorder.take()
        for sample in samples(info, dtype, graded):
            given = sample.transform(moved)
            recorder.take()
            out = _tried(info.op, given.input, *given.args, **given.kwargs)
            yield Pass(dtype in host, dtype in cuda, *recorder.take())
            if graded and out is not None:
                _tried(_differentiated, out, (given.input, given.args, given.kwargs))
                yield Pass(dtype in host_back, dtype in cuda_back, *recorder.take())


def samples(info: Any, dtype: torch.dtype, graded: bool) -> list[Any]:
    """The first samples of a function."""
    torch.manual_seed(0)
    random.seed(0)
    try:
        return list(itertools.islice(info.sample_inputs_func(info, "cpu", dtype, graded), _MOST_SAMPLES))
    except Exception:  # some samples need a package that is not there
        return []


def moved(value: Any) -> Any:
    """A tensor of the host on the device, a leaf as before; anything else as it is."""
    return value.detach().to("cuda").requires_grad_(value.requires_grad) if isinstance(value, torch.Tensor) else value


def _tried(function: Any, *args: Any, **kwargs: Any) -> Any:
    try:
        return function(*args, **kwargs)
    except Exception:
        return None


def _differentiated(out: Any, given: Any) -> None:
    tensors = [[leaf for leaf in pytree.tree_leaves(tree) if _requires_grad(leaf)] for tree in (out, given)]
    if all(tensors):
        torch.autograd.grad(*tensors, [torch.ones_like(tensor) for tensor in tensors[0]], allow_unused=True)


def _requires_grad(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad


def build() -> dict[str, Any]:
    """The table."""
    devlint.simulator.install()
    from torch.testing._internal.common_methods_invocations import op_db

    recorder = Recorder()
    recorder.install()
    taken, refused, widened = set(), set(), set()
    for each in itertools.chain.from_iterable(passes(info, recorder) for info in op_db):
        if each.on_cuda or not each.on_host:
            taken |= each.reached
        else:
            refused |= each.reached
        if each.on_cuda:
            widened |= each.widened
    return {
        "torch": torch.__version__.partition("+")[0],
        "refused": _spelled(refused - taken),
        "widened": _spelled(widened),
    }


def _spelled(keys: set[Key]) -> dict[str, str]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for name, dtype in keys:
        found[name].append(str(dtype).removeprefix("torch."))
    return {name: " ".join(sorted(spelled)) for name, spelled in sorted(found.items())}


def main() -> int:
    """Write or check the table; the exit code is 1 if `--check` finds a difference."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    text = json.dumps(build(), indent=1) + "\n"
    if options.check:
        same = dtypes.TABLE.read_text(encoding="utf-8") == text
        print("the table is what this torch says" if same else "the table differs", file=sys.stderr)
        return int(not same)
    dtypes.TABLE.write_text(text, encoding="utf-8")
    print(f"wrote {dtypes.TABLE}, {len(text):,} bytes", file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
