"""What torch's own operations say when they refuse their arguments on a simulated device, and who is named in it.

    python -m tests.simulator.texts             every operation
    python -m tests.simulator.texts --part 8    every eighth operation

provokes refusals by torch's list of wrong arguments (`error_inputs`), by tensors left on the host, and by dtypes, and
prints as JSON how many there were and those that name what there is not on a CUDA machine, or the CPU's kernels.
"""

from __future__ import annotations

import argparse
import functools
import json
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils import _pytree as pytree

import devlint.simulator

devlint.simulator.install()

FOREIGN = re.compile(
    r"devlint(?! does not simulate )|Simulated|[Pp]rivate_?[Uu]se|\bcuda[A-Z]\w*Type"
    r"|\"[\w.]*_cpu\w*\" not impl|on CPU\b|\bCPU[A-Z]\w*Type"
)
"""Names of the simulator, of torch's private device type, of tensors of such a type, and of the CPU's kernels."""
REFUSED_DTYPES = (torch.bool, torch.complex32, torch.float8_e4m3fn)
"""Few operations take them."""


def _calls(op: Any) -> Iterator[Callable[[], Any]]:
    """Calls of which most are refused."""
    for wrong in op.error_inputs("cuda") if op.error_inputs_func else ():
        sample = wrong.sample_input
        yield functools.partial(op.op, sample.input, *sample.args, **sample.kwargs)
    samples = op.sample_inputs("cpu", torch.float32) if torch.float32 in op.dtypes else ()
    for sample in list(samples)[:1]:
        given = (sample.input, *sample.args)
        leaves, shape = pytree.tree_flatten(given)
        for left in range(len(leaves)):
            mixed = [leaf.cuda() if _is_tensor(leaf) and i != left else leaf for i, leaf in enumerate(leaves)]
            yield functools.partial(op.op, *pytree.tree_unflatten(mixed, shape), **sample.kwargs)
        for dtype in REFUSED_DTYPES:
            cast = [leaf.to(dtype).cuda() if _is_tensor(leaf) else leaf for leaf in leaves]
            yield functools.partial(op.op, *pytree.tree_unflatten(cast, shape), **sample.kwargs)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.layout is torch.strided


def main() -> None:
    """Provoke, and print what was said."""
    from torch.testing._internal.common_methods_invocations import op_db

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--part", type=int, default=1, help="take every so manieth operation")
    count, named = 0, []
    for op in op_db[:: parser.parse_args().part]:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            for call in _calls(op):
                try:
                    call()
                except Exception as error:
                    count += 1
                    named += [f"{op.full_name}: {error}"] if FOREIGN.search(str(error)) else []
            named += [f"{op.full_name}: {each.message}" for each in warned if FOREIGN.search(str(each.message))]
    print(json.dumps({"refusals": count, "named": sorted(set(named))}))  # noqa: T201  # the program's output


if __name__ == "__main__":
    main()
