"""Traces of any size, to measure what reading one needs: ``python -m tests.auditor.large_trace MEGABYTES FILE``.

They are written as Kineto writes them: all operators and annotations, then all Python functions, then what the runtime
and the device did, call by call.  Each step is the same training step of a model of 100 layers, with a stack of Python
around it, two copies to the device, one within it and one value that is read.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LAYERS = 100
COPIED, READ = 4_096, 4
"""Bytes of each copy to the device, and of the value that is read, per step."""
_BEGAN = 3743411230047.5
_STEP, _LAYER = 20_000, 80
"""Microseconds of a step, and of a layer in it."""
_OUTER = 12
"""Python functions around all steps."""
_COPIES = (
    # memory, operator, function, whether the host waits
    ("HtoD (Pageable -> Device)", "aten::copy_", "to", True),
    ("HtoD (Pinned -> Device)", "aten::copy_", "to", False),
    ("DtoD (Device -> Device)", "aten::copy_", "clone", False),
    ("DtoH (Device -> Pageable)", "aten::_local_scalar_dense", "item", True),
)
_CALLS = 2 * LAYERS + 2 * len(_COPIES)
"""Calls of the runtime in a step."""
_KERNEL = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>>"
)
_MAIN, _ENGINE, _STREAM = 1, 2, 7

Event = dict[str, Any]


def write(path: Path, steps: int) -> Path:
    """Write a trace of so many steps, some 300 kB each."""
    with path.open("w", encoding="utf-8") as file:
        file.write('{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "Tesla V100"}], "traceEvents": [\n')
        file.writelines(f"{json.dumps(event)},\n" for event in _events(steps))
        file.write(json.dumps({"ph": "M", "name": "process_name", "pid": 9}) + '\n], "traceName": "large"}\n')
    return path


def _events(steps: int) -> Iterator[Event]:
    for depth in range(_OUTER):
        yield _span("python_function", f"train.py({90 - depth}): f{depth}", depth, steps * _STEP)
    for kind in (_operators, _functions, _calls):
        for step in range(steps):
            yield from kind(step)


def _span(category: str, name: str, start: float, seconds: float, tid: int = _MAIN, **args: Any) -> Event:
    timed = {"pid": 9, "tid": tid, "ts": _BEGAN + start, "dur": seconds}
    return {"ph": "X", "cat": category, "name": name, **timed, "args": args}


def _operators(step: int) -> Iterator[Event]:
    start = step * _STEP
    shapes = {"Input Dims": [[64, 512], [512, 512]], "Input type": ["float", "float"], "Record function id": 0}
    yield _span("user_annotation", f"ProfilerStep#{step}", start, _STEP)
    for number, (_, operator, _, _) in enumerate(_COPIES):
        yield _span("cpu_op", operator, start + 100 + 50 * number, 40, **shapes)
    for layer in range(LAYERS):
        begin = start + 1_000 + _LAYER * layer
        for depth, name in enumerate(("aten::linear", "aten::addmm", "aten::relu")):
            yield _span("cpu_op", name, begin + 10 + depth, 40 - 2 * depth, **shapes)
        names = ("autograd::engine::evaluate_function: AddmmBackward0", "AddmmBackward0", "aten::mm")
        for depth, name in enumerate(names):
            yield _span("cpu_op", name, begin + 8_000 + depth, 40 - 2 * depth, _ENGINE, **shapes)


def _functions(step: int) -> Iterator[Event]:
    start, ids = step * _STEP, {"Python parent id": 3, "Python module id": step}
    yield _span("python_function", "train.py(70): step", start + 20, _STEP - 50, **ids)
    for number, (_, _, function, _) in enumerate(_COPIES):
        yield _span("python_function", _builtin(function, step, number), start + 98 + 50 * number, 44, **ids)
    for layer in range(LAYERS):
        begin = start + 1_000 + _LAYER * layer
        names = (f"nn.Module: Linear_{layer}", "torch/nn/modules/module.py(1501): _call_impl")
        for depth, name in enumerate((*names, "torch/nn/modules/linear.py(110): forward")):
            yield _span("python_function", name, begin + depth, 70 - 2 * depth, **ids)
        yield _span("python_function", _builtin("linear", step, layer), begin + 5, 50, **ids)


def _builtin(function: str, step: int, number: int) -> str:
    """A name which occurs once, as the tensor is another each time."""
    return f"<built-in method {function} of Tensor object at 0x{0x7F5400000000 + 64 * (LAYERS * step + number):x}>"


def _calls(step: int) -> Iterator[Event]:
    start, correlation = step * _STEP, step * _CALLS
    for number, (memory, operator, _, waits) in enumerate(_COPIES):
        begin, correlation = start + 105 + 50 * number, correlation + 2
        yield _span("cuda_runtime", "cudaMemcpyAsync", begin, 10, correlation=correlation, cbid=41)
        size = COPIED if operator == "aten::copy_" else READ
        args = {"device": 0, "bytes": size, "correlation": correlation, "External id": 7, "memory bandwidth (GB/s)": 9}
        yield _span("gpu_memcpy", f"Memcpy {memory}", begin + 10, 5, _STREAM, **args)
        if waits:
            yield _span("cuda_runtime", "cudaStreamSynchronize", begin + 12, 5, correlation=correlation - 1, cbid=131)
    for layer in range(2 * LAYERS):
        begin, correlation = start + 1_015 + _LAYER * layer, correlation + 1
        tid = _MAIN if layer < LAYERS else _ENGINE
        ids = {"correlation": correlation, "External id": 8}
        yield _span("cuda_runtime", "cudaLaunchKernel", begin, 5, tid, cbid=211, **ids)
        yield {"ph": "s", "id": correlation, "pid": 9, "tid": tid, "ts": _BEGAN + begin, "cat": "ac2g", "name": "ac2g"}
        sizes = {"grid": [64, 1, 1], "block": [128, 1, 1], "registers per thread": 32, "est. achieved occupancy %": 40}
        yield _span("kernel", _KERNEL, begin + 5, 20, _STREAM, device=0, **ids, **sizes)


if __name__ == "__main__":
    _size = write(Path(sys.argv[2]), 10).stat().st_size
    write(Path(sys.argv[2]), 10 * int(sys.argv[1]) * 1_000_000 // _size)
