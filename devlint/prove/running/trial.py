"""One run of a script, and all that can be seen in it of a claim."""

from __future__ import annotations

import ast
import builtins
import contextlib
import functools
import importlib.machinery
import os
import random
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from devlint.prove.claim import Claim, Rows, node_at

SCRIPT = "repro.py"
PATIENCE, MAKING, IMPORTING = 8.0, 30.0, 60.0
"""Seconds that a call may take, making the object whose method is called, and an import."""
_SLOW = 0.5
"""An object that takes so many seconds of the processor to make is kept for the calls that follow."""
_MOST_KEPT = 4
MEETING = frozenset({"DVL103", "DVL104"})
"""Rules whose findings may show in an operation that takes tensors of several devices, and raises nothing."""
_SEEN = "__devlint_seen__"
VALUE, RECEIVER, BESIDE = "value", "receiver", "beside"
MENDED, NOT_ALONE = frozenset({VALUE, BESIDE}), frozenset({BESIDE})
"""What is on the accelerator from the beginning, to see whether the harm is gone, or is that of this finding."""
NOTHING: frozenset[str] = frozenset()
_WATCHED = frozenset({"DVL102", "DVL103", "DVL104", "DVL106"})


class TooLongError(BaseException):
    """A run has taken its time."""


@dataclass(frozen=True)
class Step:
    """A frame of a traceback: its file, the rows of what it was doing, and whether a module ran its own code."""

    file: str
    first: int
    last: int
    of_module: bool = False


@dataclass
class Trial:
    """What a run showed: the rows that it reached, the values that were watched, where devices met, how it ended."""

    covered: set[int] = field(default_factory=set)
    values: dict[str, list[Any]] = field(default_factory=dict)
    meetings: list[tuple[Step, str]] = field(default_factory=list)
    error: BaseException | None = None
    steps: tuple[Step, ...] = ()
    names: dict[str, Any] = field(default_factory=dict)

    def copy(self) -> Trial:
        """What was seen so far, to be gone on from."""
        values = {key: [*seen] for key, seen in self.values.items()}
        return replace(self, covered={*self.covered}, values=values, meetings=[*self.meetings], names={**self.names})

    def reached(self, rows: Rows) -> bool:
        """Whether a place in the claim's file was reached."""
        return any(rows.first <= row <= rows.last for row in self.covered)

    def inner(self, file: str) -> Step | None:
        """The innermost frame of the file."""
        return next((step for step in reversed(self.steps) if step.file == file), None)

    @property
    def said(self) -> str:
        """The exception in one line, empty if there was none."""
        if self.error is None:
            return ""
        text = " ".join(str(self.error).split())
        return f"{type(self.error).__name__}: {text}" if text else type(self.error).__name__


class Watch:
    """Sees what the claim's file does; there is one in a process, from before the file is imported."""

    def __init__(self, claim: Claim) -> None:
        self.claim = claim
        self._trial = Trial()
        self._mending = NOTHING
        self._made: dict[tuple[str, frozenset[str]], Trial] = {}
        self.seconds_making = 0.0
        """How long it took to make the objects that are kept."""
        setattr(builtins, _SEEN, self._see)
        if claim.code in _WATCHED:
            self._instrument()

    def prepare(self) -> None:
        """Let torch import what it imports at the first use, which would count as the first run's time."""
        with self._meetings():
            weight = torch.rand(2, 2, device="cuda", requires_grad=True)
            (nn.Linear(2, 2).to("cuda")(weight) * weight).sum().backward()

    def run(self, script: str, mending: frozenset[str] = NOTHING, patience: float = PATIENCE) -> Trial:
        """Run a script; what is watched under the keys in ``mending`` is on the accelerator from the beginning."""
        before, last = _parted(script)
        self._mending = mending
        trial = self._trial = Trial(names={"__name__": "__main__"})
        torch.manual_seed(0)
        random.seed(0)
        torch.set_grad_enabled(True)
        try:
            with warnings.catch_warnings(), self._meetings():
                warnings.simplefilter("ignore")
                if (before, mending) in self._made:
                    trial = self._trial = self._made[before, mending].copy()
                elif before:
                    began = time.thread_time()
                    self._execute(before, 0, max(patience, MAKING))
                    seconds = time.thread_time() - began
                    if seconds > _SLOW:
                        self._keep((before, mending), trial.copy())
                        self.seconds_making += seconds
                self._execute(last, before.count("\n"), patience)
        except (Exception, SystemExit, TooLongError) as error:
            trial.error = error
            trial.steps = tuple(_steps(error))
            trial.covered.update(step.first for step in trial.steps if step.file == self.claim.file)
            # the frames hold all values of the run
            _forget(error)
        return trial

    def _keep(self, key: tuple[str, frozenset[str]], made: Trial) -> None:
        if len(self._made) >= _MOST_KEPT:
            del self._made[next(iter(self._made))]
        self._made[key] = made

    def _execute(self, text: str, above: int, patience: float) -> None:
        """Run a part of a script, which has so many lines above it."""
        code = compile("\n" * above + text, SCRIPT, "exec")
        with _limited(patience):
            sys.settrace(self._trace)
            try:
                exec(code, self._trial.names)
            finally:
                sys.settrace(None)

    def _see(self, key: str, value: Any) -> Any:
        if key in self._mending:
            return _moved(value)
        self._trial.values.setdefault(key, []).append(value)
        return value

    def _trace(self, frame: FrameType, event: str, _: object) -> Any:
        if _real(frame.f_code.co_filename) != self.claim.file:
            return None
        covered = self._trial.covered

        def line(frame: FrameType, event: str, _: object) -> Any:
            covered.add(frame.f_lineno)
            return line

        return line if frame.f_code.co_name != "<module>" else None

    @contextlib.contextmanager
    def _meetings(self) -> Iterator[None]:
        if self.claim.code not in MEETING:
            yield
            return
        with _Meetings(self, self.claim.file):
            yield

    def met(self, step: Step, text: str) -> None:
        """Note that tensors of several devices have met."""
        self._trial.meetings.append((step, text))

    def _instrument(self) -> None:
        claim = self.claim
        original: Callable[..., Any] = importlib.machinery.SourceFileLoader.get_code

        def get_code(loader: Any, name: str) -> Any:
            path = loader.get_filename(name)
            return instrumented(claim, path) if _real(path) == claim.file else original(loader, name)

        kind: Any = importlib.machinery.SourceFileLoader
        kind.get_code = get_code


def instrumented(claim: Claim, path: str) -> Any:
    """The code of the claim's file, which tells the value of what the finding underlines."""
    with open(path, "rb") as stream:
        data = stream.read()
    tree = ast.parse(data, path)
    lines = data.decode("utf-8", "replace").splitlines()
    node = node_at(tree, lines, claim.span)
    keys = {id(one): BESIDE for one in (node_at(tree, lines, span) for span in claim.beside) if _is_value(one)}
    if node is not None and _is_value(node):
        keys[id(node)] = VALUE
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            keys[id(node.func.value)] = RECEIVER
    _Seen(keys).visit(tree)
    return compile(tree, path, "exec")


def _is_value(node: ast.expr | None) -> bool:
    return node is not None and not isinstance(node, (ast.Starred, ast.Slice))


class _Seen(ast.NodeTransformer):
    def __init__(self, keys: dict[int, str]) -> None:
        self._keys = keys

    def visit(self, node: ast.AST) -> ast.AST:
        """Wrap what is watched."""
        key = self._keys.get(id(node))
        visited = self.generic_visit(node)
        if key is None or not isinstance(visited, ast.expr):
            return visited
        name, word = ast.Name(_SEEN, ast.Load()), ast.Constant(key)
        call = ast.Call(name, [word, visited], [])
        return ast.fix_missing_locations(ast.copy_location(call, visited))


class _Meetings(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's own
    def __init__(self, watch: Watch, file: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's own
        self._watch = watch
        self._file = file

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        given = [one for one in pytree.tree_leaves((args, kwargs)) if isinstance(one, torch.Tensor)]
        devices = {str(one.device) for one in given}
        made = {str(one.device) for one in pytree.tree_leaves(result) if isinstance(one, torch.Tensor)}
        if len(devices | made) > 1 and given:
            step = self._here()
            if step is not None:
                name = str(func).split(".")[1].strip("_")
                there = ", ".join(sorted(made - devices)) or ", ".join(sorted(devices))
                copied = f"`{name}` copies from {', '.join(sorted(devices))} to {there}"
                text = copied if made - devices else f"`{name}` takes tensors on {there}"
                self._watch.met(step, text)
        return result

    def _here(self) -> Step | None:
        frame: FrameType | None = sys._getframe(2)
        while frame is not None:
            if _real(frame.f_code.co_filename) == self._file:
                return _step(frame, frame.f_lasti, frame.f_lineno)
            frame = frame.f_back
        return None


def devices_of(value: Any) -> set[str]:
    """Where the tensors of a value are, those of modules and of objects that hold some too."""
    if isinstance(value, nn.Module):
        return {str(one.device) for one in (*value.parameters(), *value.buffers())}
    if isinstance(value, torch.Generator):
        return {str(value.device)}
    found = [one for one in pytree.tree_leaves(value) if isinstance(one, torch.Tensor)]
    if not found and hasattr(value, "__dict__"):
        found = [one for one in pytree.tree_leaves(dict(vars(value))) if isinstance(one, torch.Tensor)]
    return {str(one.device) for one in found}


def _moved(value: Any) -> Any:
    if isinstance(value, nn.Module):
        return value.to("cuda")
    return pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.to("cuda"), value)


def _parted(script: str) -> tuple[str, str]:
    """All but the last statement of a script, and that."""
    body = ast.parse(script).body
    lines = script.splitlines(True)
    row = body[-1].lineno - 1 if len(body) > 1 else 0
    return "".join(lines[:row]), "".join(lines[row:])


@functools.cache
def _real(path: str) -> str:
    return os.path.realpath(path)


def _steps(error: BaseException) -> Iterator[Step]:
    trace = error.__traceback__
    while trace is not None:
        yield _step(trace.tb_frame, trace.tb_lasti, trace.tb_lineno)
        trace = trace.tb_next


def _step(frame: FrameType, instruction: int, row: int) -> Step:
    first = last = row
    positions = getattr(frame.f_code, "co_positions", None)
    if positions is not None:
        found = [*positions()][instruction // 2]
        first, last = found[0] or row, found[1] or row
    return Step(_real(frame.f_code.co_filename), first, last, isinstance(frame.f_locals.get("self"), nn.Module))


def _forget(error: BaseException) -> None:
    seen: BaseException | None = error
    while seen is not None:
        seen.__traceback__, seen = None, seen.__context__


@contextlib.contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raise in the block after so many seconds, where the system can."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def stop(*_: object) -> None:
        raise TooLongError(f"the call takes more than {seconds:g} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
