"""Runs programs on the simulated accelerator, in this process, and observes what the linter makes claims about."""

from __future__ import annotations

import ast
import contextlib
import functools
import io
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

FILE = "<program>"
LONGEST = 5_000
MOVES = frozenset({"to", "cuda", "cpu", "type_as"})
DEVICE_ERROR = re.compile(
    r"same device|at least two devices|indices should be either on|should be the same|should be a 1D CPU int64"
    r"|can't convert \w+(:\d+)? device type|Expected one of cpu|Invalid device string|cannot pin"
    r"|Expected a '\w+' device type for generator|can't optimize a non-leaf|mismatching|expected device .* but got"
)
ANOTHER_MATTER = re.compile(r"in-place|inplace|single memory location|does not end")
"""What torch refuses for reasons of its own: such a program says nothing about devices."""


class NotAProgram(Exception):
    """The program does not run for a reason that has nothing to do with devices."""

    @property
    def expected(self) -> bool:
        """Whether programs are known to be like that now and then; otherwise the language has a mistake."""
        return bool(ANOTHER_MATTER.search(str(self)))


@dataclass
class Run:
    """What happened: where it failed, by the rows of the traceback from the inside to the outside, and what was seen.

    ``reached`` are the rows whose statements began, ``lost`` those where the result of a tensor's move was dropped,
    ``broken`` those that assigned a tensor which collects no gradients.
    """

    failed: tuple[int, ...] = ()
    error: str = ""
    reached: set[int] = field(default_factory=set)
    lost: set[int] = field(default_factory=set)
    broken: set[int] = field(default_factory=set)
    steps: int = 0
    placed: bool = False

    def begins(self, row: int) -> None:
        self.reached.add(row)
        self.steps += 1
        if self.steps > LONGEST:
            raise NotAProgram("it does not end")

    def made(self, row: int, value: Any) -> Any:
        """A value that is about to be assigned."""
        if hasattr(value, "is_leaf") and not (value.is_leaf and value.requires_grad):
            self.broken.add(row)
        return value

    def given(self, value: Any) -> Any:
        """An argument, from callers that keep what they pass on the accelerator."""
        if not self.placed:
            return value
        if hasattr(value, "is_leaf"):
            return value.cuda()
        return "cuda" if value == "cpu" or type(value).__name__ == "device" else value

    def dropped(self, row: int, receiver: Any, name: str, *args: Any, **kwargs: Any) -> None:
        """A move whose result nobody keeps."""
        result = getattr(receiver, name)(*args, **kwargs)
        if hasattr(receiver, "is_leaf") and result is not None:
            self.lost.add(row)


class Observing(ast.NodeTransformer):
    """Has every statement say that it begins, and shows what it assigns or drops."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
                setattr(node, name, [new for old in body for new in (_call("begins", old), old)])
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        node.body = [*_given(node), *node.body]
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        arguments = [ast.Constant(node.lineno), node.value]
        node.value = ast.copy_location(ast.Call(_observer("made"), arguments, []), node.value)
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        self.generic_visit(node)
        call = node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in MOVES:
            arguments = [ast.Constant(node.lineno), call.func.value, ast.Constant(call.func.attr), *call.args]
            node.value = ast.copy_location(ast.Call(_observer("dropped"), arguments, call.keywords), call)
        return node


def _given(node: ast.FunctionDef) -> list[ast.stmt]:
    names = [argument.arg for argument in node.args.args]
    calls = [ast.Call(_observer("given"), [ast.Name(name, ast.Load())], []) for name in names]
    pairs = zip(names, calls, strict=True)
    return [ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], call), node) for name, call in pairs]


def _observer(name: str) -> ast.expr:
    return ast.Attribute(ast.Name("_run", ast.Load()), name, ast.Load())


def _call(name: str, node: ast.stmt) -> ast.stmt:
    return ast.copy_location(ast.Expr(ast.Call(_observer(name), [ast.Constant(node.lineno)], [])), node)


@functools.lru_cache(maxsize=64)
def _compiled(text: str) -> CodeType:
    tree = ast.fix_missing_locations(Observing().visit(ast.parse(text)))
    return compile(tree, FILE, "exec", dont_inherit=True)


@functools.cache
def simulate() -> Callable[..., None]:
    """Give this process a simulated accelerator; what seeds torch's random numbers."""
    import torch

    import devlint.simulator

    devlint.simulator.install()
    torch.set_num_threads(1)
    return lambda: torch.manual_seed(0) and None


@contextlib.contextmanager
def _placing() -> Iterator[None]:
    """Whoever calls a module of the program has it, and its inputs, on the accelerator."""
    import torch

    def place(module: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...] | None:
        if type(module).__module__ != "program":
            return None
        module.cuda()
        return tuple(given.cuda() if isinstance(given, torch.Tensor) else given for given in inputs)

    hook = torch.nn.modules.module.register_module_forward_pre_hook(place)
    try:
        yield
    finally:
        hook.remove()


def run(text: str, words: tuple[str, ...] = (), placed: bool = False) -> Run:
    """Run a program that finds these words in ``sys.argv``; ``placed`` puts modules and inputs on the accelerator."""
    simulate()()
    done = Run(placed=placed)
    space: dict[str, Any] = {"__name__": "program", "_run": done}
    argv, sys.argv = sys.argv, ["program", *words]
    try:
        placing = _placing() if placed else contextlib.nullcontext()
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(), placing:
            warnings.simplefilter("ignore")
            exec(_compiled(text), space)
    except NotAProgram:
        raise
    except Exception as problem:
        done.error = f"{type(problem).__name__}: {problem}"
        trace = traceback.extract_tb(problem.__traceback__)
        done.failed = tuple(dict.fromkeys(e.lineno or 0 for e in reversed(trace) if e.filename == FILE))
        if not DEVICE_ERROR.search(str(problem)) or not done.failed:
            raise NotAProgram(done.error) from problem
    finally:
        sys.argv = argv
    return done
