"""Holds the dtypes of the simulated device against those that torch's own tests give CUDA, in both directions.

    python -m tests.simulator.dtypes             every function in every dtype that the CPU or CUDA takes
    python -m tests.simulator.dtypes --part 8    every eighth function

A pair of a function and a dtype agrees if all of its first samples are taken and CUDA takes it, or if one of them is
refused and CUDA refuses it.  Prints one line for each that does not, and a summary as JSON: how many pairs of each kind
agree, of how many.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections import Counter

import torch

import devlint.simulator
from tools.make_dtype_table import moved, samples

devlint.simulator.install()

NOT_SIMULATED = {
    "sparse.mm.reduce": "it has kernels for the CPU only, whatever dtypes its list gives CUDA",
    **dict.fromkeys(
        ("jiterator_unary", "jiterator_binary", "jiterator_2inputs_2outputs", "jiterator_4inputs_with_extra_args"),
        "compiled by CUDA",
    ),
    "jiterator_binary_return_by_ref": "compiled by CUDA",
    "torch._scaled_mm": "its samples are of one dtype, whichever is asked for",
    "torch._scaled_mm_v2": "its samples are of one dtype, whichever is asked for",
    "as_strided.partial_views": "its samples are views, and lose what they are views of on their way to a device",
    "tensor_split": "its samples have indices that must stay on the host, on CUDA too",
}
"""Functions that say nothing about dtypes here, and why."""


def taken(info: object, dtype: torch.dtype) -> str:
    """Why one of the samples was refused; empty if none was, `none` if there are none."""
    found = samples(info, dtype, graded=False)
    for sample in found:
        given = sample.transform(moved)
        try:
            info.op(given.input, *given.args, **given.kwargs)  # type: ignore[attr-defined]  # torch types none of this
        except Exception as error:
            return f"{type(error).__name__}: {str(error).splitlines()[0][:150]}"
    return "" if found else "none"


def main() -> int:
    """Compare and print; the exit code is 1 if less than 98 % agree."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--part", type=int, default=1, help="take every so manieth function")
    parser.add_argument("--only", default="", help="functions whose name contains this")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    from torch.testing._internal.common_methods_invocations import op_db

    agreeing: Counter[str] = Counter()
    of: Counter[str] = Counter()
    chosen = [info for info in op_db if options.only in info.full_name and info.full_name not in NOT_SIMULATED]
    for info in chosen[:: options.part]:
        host, cuda = set(info.dtypes), set(info.dtypesIfCUDA)
        for dtype in sorted(host | cuda, key=str):
            refusal = taken(info, dtype)
            if refusal == "none":
                continue
            kind = "both" if dtype in host & cuda else "only the CPU" if dtype in host else "only CUDA"
            of[kind] += 1
            agreeing[kind] += (dtype in cuda) == (not refusal)
            if (dtype in cuda) != (not refusal):
                print(f"{info.full_name} {dtype} ({kind}): {refusal or 'taken'}")  # noqa: T201  # the program's output
    print(json.dumps({kind: [agreeing[kind], of[kind]] for kind in of}))  # noqa: T201  # the program's output
    return int(sum(agreeing.values()) < 0.98 * sum(of.values()))


if __name__ == "__main__":
    raise SystemExit(main())
