"""A process that runs scripts on a stand-in accelerator and says which of the watched rows raise; see reading.py.

Reads `[code, rows]` as a line of JSON, answers `[rows that raised because of a device, other failures]`.
"""

from __future__ import annotations

import ast
import json
import re
import sys
import traceback
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.utils.data
from torch import nn
from torch.overrides import TorchFunctionMode

from tools.device_table import fake

DEVICE = fake.ACCELERATOR
MISMATCH = re.compile(rf"{fake._MISMATCH.pattern}|wrapped to wrong device|mismatching|at least two devices", re.I)
FLAGS = ("cuda", "gpu", "flag", "use_gpu")


class Loader:
    """A `DataLoader` without the random numbers that torch's own draws, which FakeTensor cannot tell."""

    def __init__(self, dataset: Any, batch_size: int = 1, collate_fn: Any = None, **_: Any) -> None:
        self.dataset, self.size = dataset, batch_size
        self.collate = collate_fn or torch.utils.data.default_collate

    def __len__(self) -> int:
        return -(-len(self.dataset) // self.size)

    def __iter__(self) -> Iterator[Any]:
        for start in range(0, len(self.dataset), self.size):
            stop = min(start + self.size, len(self.dataset))
            yield self.collate([self.dataset[position] for position in range(start, stop)])


class Indexing(TorchFunctionMode):
    """FakeTensor lets an accelerator's index select from a CPU tensor; no accelerator does."""

    def __torch_function__(self, function: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function is torch.Tensor.__getitem__ and args[0].device.type == "cpu":
            index = args[1] if isinstance(args[1], tuple) else (args[1],)
            if any(isinstance(part, torch.Tensor) and part.device.type != "cpu" for part in index):
                raise RuntimeError("indices should be either on cpu or on the same device")
        return function(*args, **(kwargs or {}))


class Watch(ast.NodeTransformer):
    """Lets the statements of some rows raise, and go on."""

    def __init__(self, rows: set[int]) -> None:
        self.rows = rows

    def visit(self, node: ast.AST) -> Any:
        node = self.generic_visit(node)
        if not isinstance(node, ast.stmt) or node.lineno not in self.rows:
            return node
        watched = ast.parse(f"try: pass\nexcept Exception as problem_: caught({node.lineno}, problem_)").body[0]
        assert isinstance(watched, ast.Try)
        watched.body = [node]
        return ast.copy_location(watched, node)


def apply(self: nn.Module, function: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> nn.Module:
    """`Module._apply` without the swap of data under a parameter, which fake tensors refuse."""
    for module in self.modules():
        for name, parameter in module._parameters.items():
            if parameter is not None:
                module._parameters[name] = nn.Parameter(function(parameter.data), parameter.requires_grad)
        for name, buffer in module._buffers.items():
            if buffer is not None:
                module._buffers[name] = function(buffer)
    return self


def twin(self: torch.Tensor, memo: dict[int, Any]) -> torch.Tensor:
    """A deep copy, which fake tensors have none of their own."""
    copy = self.detach().clone()
    return nn.Parameter(copy, self.requires_grad) if isinstance(self, nn.Parameter) else copy


def arguments(function: Any, flag: bool) -> list[Any]:
    """What a caller who keeps everything on the accelerator passes, by the names of the parameters."""
    code = function.__code__
    names = code.co_varnames[: code.co_argcount - len(function.__defaults__ or ())]
    return [argument(name, flag) for name in names if name != "self"]


def argument(name: str, flag: bool) -> Any:
    if name in FLAGS:
        return flag
    if name in ("x", "y", "z"):
        return torch.randn(4, 4).to(DEVICE)
    if name == "index":
        return torch.zeros(4, dtype=torch.long).to(DEVICE)
    if name == "model":
        return nn.Linear(4, 4).to(DEVICE)
    if name == "args":
        return types.SimpleNamespace(device=DEVICE, gpu=flag, use_gpu=flag, no_gpu=not flag, cpu=not flag)
    return {"device": DEVICE, "n": 3, "weights": [1.0, 2.0, 3.0, 4.0]}[name]


def call_all(space: dict[str, Any], flag: bool) -> None:
    """Call what the script defines, as its caller would: modules after they were moved."""
    for value in list(space.values()):
        if getattr(value, "__module__", "") != "script" or getattr(value, "__name__", "_").startswith("_"):
            continue
        if isinstance(value, type):
            if issubclass(value, nn.Module) and value.__init__.__code__.co_argcount == 1:
                made = value().to(DEVICE)
                if type(made).forward is not nn.Module.forward:
                    made(*arguments(type(made).forward, flag))
        elif hasattr(value, "__code__"):
            result = value(*arguments(value, flag))
            if isinstance(result, types.GeneratorType):
                list(result)


def run(code: str, rows: set[int]) -> tuple[list[int], list[str]]:
    """Run a script twice, with what it may be told once on and once off."""
    code = re.sub(r"\bsee\([^()]*\)", "None", code.replace("cuda", "gpu"))
    tree = ast.fix_missing_locations(Watch(rows).visit(ast.parse(code)))
    compiled = compile(tree, "script", "exec", dont_inherit=True)
    raised: set[int] = set()
    failures: set[str] = set()

    def caught(row: int, problem: Exception) -> None:
        if isinstance(problem, fake.FakeTensorDeviceMismatchError) or MISMATCH.search(str(problem)):
            raised.add(row)
        else:
            failures.add(f"row {row}: {type(problem).__name__}: {problem}")

    for flag in (True, False):
        space: dict[str, Any] = {"__name__": "script", "caught": caught}
        try:
            with fake.lenient_mode(), Indexing():
                exec(compiled, space)
                call_all(space, flag)
        except SystemExit:
            pass
        except Exception as problem:
            trace = traceback.extract_tb(problem.__traceback__)
            at = [entry.lineno for entry in trace if entry.filename == "script"]
            failures.add(f"rows {at}: {type(problem).__name__}: {problem}")
    return sorted(raised), sorted(failures)


def main() -> None:
    """Answer until there are no more questions."""
    nn.Module._apply = apply  # type: ignore[assignment]  # the stand-in's
    fake.FakeTensor.__deepcopy__ = twin  # type: ignore[method-assign]  # the stand-in's
    torch.utils.data.DataLoader = Loader  # type: ignore[assignment, misc]  # the stand-in's
    torch.gpu.is_available = lambda: True
    torch.gpu.device_count = lambda: 1
    # what a script prints shall not be taken for an answer
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        code, rows = json.loads(line)
        print(json.dumps(run(code, set(rows))), file=answers, flush=True)


if __name__ == "__main__":
    main()
