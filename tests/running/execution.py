"""One run of a case: its file is read anew, the case called under the recorder, and all that claims need is kept."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import os
import random
import shlex
import sys
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _SingleProcessDataLoaderIter

from devlint.auditor.run import header
from devlint.auditor.running.recording import Plan, Recording
from devlint.auditor.running.runner import describe
from devlint.finding import Finding
from devlint.record import Process
from devlint.simulator import install
from tests.running import arguments, imaginary
from tests.running.cases import TOP, Case, Fixture
from tests.running.claims import Claim
from tests.running.instrument import ENTERED, LEFT_OUT, MOVED, NOTHING, WATCH, Key, call_around, instrumented
from tests.running.observed import Run, failure_of
from tests.running.words import filling

DEVICES = 2
"""How many accelerators are simulated."""
_ENVIRONMENT = dict(os.environ)
_DTYPE = torch.get_default_dtype()


class Recorder:
    """Records what happens in a block, on a machine: `simulated`, `real`, or the `host`, which has nothing to record.

    It is `devlint.audit()`, but for the judgement of the record, which claims do without.
    """

    def __init__(self, machine: str) -> None:
        self.process: Process | None = None
        self._recording: Recording | None = None
        if machine != "host":
            simulated = machine == "simulated"
            plan = Plan(header(simulated=simulated), simulator=install if simulated else None, devices=DEVICES)
            self._recording = Recording(plan)

    def __enter__(self) -> Recorder:
        if self._recording:
            self._recording.begin()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if self._recording:
            if error:
                self._recording.explain(error)
            self.process = self._recording.process(describe(error))
            self._recording.end()


def execute(
    fixture: Fixture,
    case: Case,
    call: str,
    machine: str,
    claims: dict[Finding, Claim],
    own: Claim | None = None,
    left_out: tuple[Finding, ...] = (),
) -> Run:
    """Run a case; ``claims`` are those made of the file, ``own`` is that of its rule.

    ``call`` is the expression of a `# run:`, or empty for the conventional one.  What ``left_out`` findings underline
    is left out, or moved to the accelerator where their claim says that this puts it right.
    """
    tree, lines = fixture.tree, fixture.lines
    run = Run(fixture, case, call or f"{case.name}(...)", machine, left_out=left_out)
    nodes = [(run.node(finding), claim) for finding, claim in claims.items()]
    watched = {chosen for node, claim in nodes for chosen in claim.watches(node)}
    watched.update(own.surveys(tree) if own else ())
    marks: dict[str, set[ast.AST]] = {WATCH: watched, MOVED: set(), NOTHING: set(), LEFT_OUT: set()}
    for finding in left_out:
        claim = claims[finding]
        whole = call_around(tree, lines, finding.span) if claim.leaves_out_call else None
        marks[MOVED if claim.causal else NOTHING if whole else LEFT_OUT].add(whole or run.node(finding))
    code = instrumented(fixture.text, tree, marks)
    program = compile(code, str(fixture.path), "exec")
    reset()
    recorder = Recorder(machine)
    if fixture.code not in ("DVL303", "DVL305"):
        _make_batches_here()
    at_home = "host" if machine == "host" else "accelerator"
    during = {claim.during: None for claim in (own, *claims.values()) if claim and claim.machine == at_home}
    with warnings.catch_warnings(record=True) as run.warnings, contextlib.ExitStack() as around:
        warnings.simplefilter("always")
        _placed_warnings(run)
        for enter in during:
            around.enter_context(enter(run))
        try:
            with recorder:
                run.value = _perform(run, program, call)
        except StopIteration:  # the data of a loop without end
            pass
        except BaseException as error:  # whatever it is, it is what the run showed
            run.failure = failure_of(error, str(fixture.path), lines)
    run.process = recorder.process
    return run


def _placed_warnings(run: Run) -> None:
    """Note with each warning which row of the fixture was running, whatever row the warning names."""
    keep = warnings.showwarning

    def show(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
        run.warned.append((run.row(), f"{category.__name__}: {message}"))
        keep(message, category, *where, **more)

    warnings.showwarning = show


def _make_batches_here() -> None:
    """Let loaders do without their workers, which take time and are the matter of one rule alone."""

    def iterator(self: DataLoader[Any]) -> Any:
        workers, self.num_workers = self.num_workers, 0
        try:
            return _SingleProcessDataLoaderIter(self)
        finally:
            self.num_workers = workers

    DataLoader._get_iterator = iterator  # type: ignore[method-assign]  # in a process of its own


class Nothing:
    """The result of a call that was left out; it can be a context."""

    def __enter__(self) -> Nothing:
        return self

    def __exit__(self, *error: object) -> None:
        pass


def reset() -> None:
    """Begin as a new process does, and with the same random numbers."""
    os.environ.clear()
    os.environ.update(_ENVIRONMENT)
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    torch.set_default_device(None)
    torch.set_default_dtype(_DTYPE)
    torch.set_grad_enabled(True)
    torch.__future__.set_overwrite_module_params_on_conversion(False)
    torch.set_warn_always(True)
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)


def _perform(run: Run, program: types.CodeType, call: str) -> Any:
    """Execute the file, and then the case."""
    module = types.ModuleType(f"{imaginary.PACKAGE}.case")
    sys.modules[module.__name__] = module
    names = vars(module)
    names.update(__file__=str(run.fixture.path), __package__=imaginary.PACKAGE)
    names.update({WATCH: _watcher(run), ENTERED: _marker(run), MOVED: _mover(run.machine), NOTHING: Nothing()})
    run.namespace = names
    is_top = run.case.name == TOP
    if is_top and call:
        names["__name__"] = "__main__"
    sys.argv = [str(run.fixture.path), *(shlex.split(call)[2:] if is_top else ())]
    # where the top level fails, its own case tells; what it has defined until then can be called
    with contextlib.nullcontext() if is_top else contextlib.suppress(Exception):
        exec(program, names)  # the fixture is ours
    if is_top:
        return None
    machine = run.machine
    if call:
        words = {**arguments.vocabulary(machine), **names}
        words.update({name: filling(value, machine) for name, value in names.items() if not name.startswith("_")})
        return _finished(eval(compile(call, "<run>", "eval"), words))  # so is its comment
    return _finished(_conventionally(names[run.case.name], machine))


def _watcher(run: Run) -> Callable[[Key, Any], Any]:
    def watch(key: Key, value: Any) -> Any:
        run.values.setdefault(key, []).append(value)
        return value

    return watch


def _marker(run: Run) -> Callable[[int], None]:
    def mark(row: int) -> None:
        run.entered.add(row)
        owner = sys._getframe(1).f_locals.get("self")
        if owner is not None and not any(owner is known for known in run.objects):
            run.objects.append(owner)

    return mark


def _mover(machine: str) -> Callable[[Any], Any]:
    device = arguments.vocabulary(machine)["cuda"]

    def move(value: Any) -> Any:
        if isinstance(value, nn.Module):
            return value.to(device)
        return torch.utils._pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.to(device), value)

    return move


def _conventionally(thing: Any, machine: str) -> Any:
    """Call a function; make an object of a class, and if it is a module, move it and call it."""
    made = thing(**arguments.filled(thing, machine))
    if isinstance(thing, type) and isinstance(made, nn.Module):
        made.to(arguments.vocabulary(machine)["cuda"])
        if type(made).forward is not nn.Module.forward:
            made(**arguments.filled(made.forward, machine))
    return made


def _finished(value: Any) -> Any:
    """What comes out in the end of what may only have begun."""
    if inspect.iscoroutine(value):
        return asyncio.run(value)
    return list(value) if inspect.isgenerator(value) else value
