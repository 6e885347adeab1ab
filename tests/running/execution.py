"""One run of a case: its file is read anew, the case called under the recorder, and all that claims need is kept."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import random
import shlex
import sys
import types
import warnings
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch
from torch import nn

import devlint
from devlint.finding import Finding
from tests.running import arguments, imaginary
from tests.running.cases import TOP, Case, Fixture
from tests.running.claims import Claim
from tests.running.instrument import ENTERED, WATCH, instrumented
from tests.running.observed import Key, Run, failure_of

DEVICES = 2
"""How many accelerators are simulated."""


def recorder(machine: str) -> AbstractContextManager[Any]:
    """Records what happens on a machine: `simulated`, `real`, or the `host`, which has nothing to record."""
    if machine == "host":
        return contextlib.nullcontext()
    return devlint.audit(simulate=True, devices=DEVICES) if machine == "simulated" else devlint.audit()


def execute(
    fixture: Fixture,
    case: Case,
    call: str,
    machine: str,
    claims: list[tuple[Finding, Claim]],
    own: Claim | None = None,
    left_out: tuple[Finding, ...] = (),
) -> Run:
    """Run a case; ``claims`` are those made of the file, ``own`` is that of its rule.

    ``call`` is the expression of a `# run:`, or empty for the conventional one.
    """
    lines = fixture.path.read_text(encoding="utf-8").splitlines()
    run = Run(fixture, case, call or f"{case.name}(...)", lines, machine, left_out=left_out)
    tree = fixture.tree
    nodes = [(run.node(finding), claim) for finding, claim in claims]
    watched = {chosen for node, claim in nodes for chosen in claim.watches(node)} | set(
        own.surveys(tree) if own else ()
    )
    code = instrumented(tree, watched, {run.node(finding) for finding in left_out})
    program = compile(code, str(fixture.path), "exec")
    _reset()
    with warnings.catch_warnings(record=True) as run.warnings, contextlib.suppress(_Ended):
        warnings.simplefilter("always")
        audit = recorder(machine)
        with audit:
            try:
                run.value = _perform(run, program, call)
            except BaseException as error:  # whatever it is, it is what the run showed
                run.failure = failure_of(error, str(fixture.path), lines)
                raise _Ended from error
    if machine != "host":
        run.process = audit.record.processes[0]
    return run


class _Ended(Exception):
    """Takes a failed run out of the recorder."""


def _reset() -> None:
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)


def _perform(run: Run, program: types.CodeType, call: str) -> Any:
    """Execute the file, and then the case."""
    module = types.ModuleType(f"{imaginary.PACKAGE}.case")
    sys.modules[module.__name__] = module
    names = vars(module)
    names.update(__file__=str(run.fixture.path), __package__=imaginary.PACKAGE)
    names[WATCH], names[ENTERED] = _watcher(run.values), run.entered.add
    run.namespace = names
    is_top = run.case.name == TOP
    sys.argv = [str(run.fixture.path), *(shlex.split(call)[2:] if is_top else ())]
    # where the top level fails, its own case tells; what it has defined until then can be called
    with contextlib.nullcontext() if is_top else contextlib.suppress(Exception):
        exec(program, names)  # the fixture is ours
    if is_top:
        return None
    machine = run.machine
    if call:
        words = {**arguments.vocabulary(machine), **names}
        return _finished(eval(compile(call, "<run>", "eval"), words))  # so is its comment
    return _finished(_conventionally(names[run.case.name], machine))


def _watcher(values: dict[Key, list[Any]]) -> Any:
    def watch(key: Key, value: Any) -> Any:
        values.setdefault(key, []).append(value)
        return value

    return watch


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
