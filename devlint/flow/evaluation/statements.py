"""Statements: how each changes the state, with branches joined and loops run to a fixpoint."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable

from devlint.device import LoopRound, PathTaken
from devlint.flow.catalog.concepts import TRANSPARENT_DECORATORS
from devlint.flow.core import events
from devlint.flow.core.call import Loop
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.scope import in_shim
from devlint.flow.domain import widening
from devlint.flow.domain.objects import Class, Function
from devlint.flow.domain.state import State, merge, rejoin
from devlint.flow.domain.values import UNKNOWN, Const, Named, Sequence
from devlint.flow.evaluation import conditions, contexts, device_conditions, predicates
from devlint.flow.evaluation.assignment import bind
from devlint.flow.evaluation.expressions import evaluate, evaluate_test
from devlint.flow.evaluation.operators import operate
from devlint.flow.syntax import names, nodes
from devlint.flow.transfer import containers, loop_invariance
from devlint.flow.transfer.device_queue import DeviceQueue
from devlint.flow.transfer.escapes import Escapes
from devlint.flow.transfer.indexing import assign_item
from devlint.flow.transfer.iteration import ELEMENT, each, runs, runs_once, taken
from devlint.flow.transfer.loop_invariance import is_step_loop

_MOST_ROUNDS = 3
_STOPS = frozenset(
    {"sys.exit", "exit", "quit", "os._exit", "pytest.skip", "pytest.exit", "unittest.SkipTest", "self.skipTest"}
)


def run_body(frame: Frame, body: list[ast.stmt]) -> None:
    """Interpret statements in order; what follows a return or raise is not reached."""
    for node in body:
        if frame.state.dead:
            # definitions in dead code still get a name
            return
        handler = _STATEMENTS.get(type(node))
        if handler is not None:
            handler(frame, node)


# -- simple statements -----------------------------------------------------------------------------------------------


def _expression(frame: Frame, node: ast.Expr) -> None:
    value = node.value
    if isinstance(value, ast.Call):
        frame.discarded = frozenset((value,))
        path = names.dotted(value.func)
        if path in _STOPS or frame.interpreter.index.resolve(path) in _STOPS or _is_of_no_base(frame, value):
            frame.state.dead = True
            return
    elif isinstance(value, ast.Tuple):
        frame.discarded = frozenset(value.elts)
    if not isinstance(value, ast.Constant):
        evaluate(frame, value)


def _is_of_no_base(frame: Frame, call: ast.Call) -> bool:
    """Whether it is ``super(Other, self).method()`` of a class of the file that is no base, and so raises.

    A class that derives from both may be meant.
    """
    asked = call.func.value if isinstance(call.func, ast.Attribute) and names.of_super(call) else None
    named = names.dotted(asked.args[0]) if isinstance(asked, ast.Call) and asked.args else ""
    index, own = frame.interpreter.index, frame.owner
    other = index.classes.get(index.resolve(named)) if named else None
    if other is None or own is None or own.index is not index:
        return False
    return not any({own, other} <= {*info.linearization()} for info in index.classes.values())


def _assign(frame: Frame, node: ast.Assign) -> None:
    value = evaluate(frame, node.value)
    for target in node.targets:
        bind(frame, target, value, node.value)


def _annotated(frame: Frame, node: ast.AnnAssign) -> None:
    if node.value is not None:
        bind(frame, node.target, evaluate(frame, node.value), node.value)


def _augmented(frame: Frame, node: ast.AugAssign) -> None:
    right = evaluate(frame, node.value)
    if isinstance(node.target, ast.Subscript):
        assign_item(frame, node.target, right, node.value, combined=True)
        return
    left = evaluate(frame, node.target)
    result = operate(frame, node, node.target, left, node.value, right, inplace=True)
    if isinstance(left, Sequence):
        result = Sequence(None, UNKNOWN, left.mutable, left.oid)
        containers.change(frame, left, node.target, result)
    bind(frame, node.target, result, node)


def _delete(frame: Frame, node: ast.Delete) -> None:
    for target in node.targets:
        if isinstance(target, ast.Name):
            frame.state.env.pop(target.id, None)


def _return(frame: Frame, node: ast.Return) -> None:
    value = evaluate(frame, node.value) if node.value is not None else Const(None)
    frame.returns.append(value)
    for observer in events.heard(frame, "on_return"):
        observer.on_return(frame, node, value)
    if not frame.inlined:
        frame.component(Escapes).data((value,))
        if frame.info is None or not frame.info.private:
            frame.component(Escapes).tensors((value,))
    frame.exits.append(frame.state.copy())
    frame.state.dead = True


def _raise(frame: Frame, node: ast.Raise) -> None:
    frame.state.dead = True


def _assert(frame: Frame, node: ast.Assert) -> None:
    frame.checking = True
    evaluate_test(frame, node.test)
    frame.checking = False
    flag = conditions.condition(frame, node.test)
    frame.state.assume(flag, True)
    conditions.refine(frame, node.test, True)


def _import(frame: Frame, node: ast.Import | ast.ImportFrom) -> None:
    for name, path in names.imported(node).items():
        frame.state.env[name] = Named(path)
    if isinstance(node, ast.ImportFrom):
        for observer in events.heard(frame, "on_import"):
            observer.on_import(frame, node)


def _function(frame: Frame, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    info = frame.code.index.function(node)
    closure = (frame, *frame.closure) if frame.info is not None else ()
    plain = not info.decorators or all(name.endswith(TRANSPARENT_DECORATORS) for name in info.decorators)
    frame.state.env[node.name] = Function(info, closure) if plain else UNKNOWN
    info.shim = info.shim or in_shim(frame)
    info.guarded = info.guarded or (frame.state.accelerated and not frame.inlined)
    define(frame, node)
    if closure:
        frame.interpreter.defined(frame, info, closure)


def define(frame: Frame, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    """Evaluate what a definition evaluates: decorators, and defaults of parameters."""
    decorate(frame, node)
    for default in (*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)):
        if not isinstance(default, ast.Constant):
            frame.defaults = True
            evaluate(frame, default)
            frame.defaults = False


def decorate(frame: Frame, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
    """Evaluate the decorators of a definition."""
    for decorator in node.decorator_list:
        frame.decorator = decorator
        evaluate(frame, decorator)
    frame.decorator = None


def _class(frame: Frame, node: ast.ClassDef) -> None:
    info = frame.code.index.class_(node)
    info.shim = info.shim or in_shim(frame)
    frame.state.env[node.name] = Class(info)
    decorate(frame, node)
    if info.index.triggered(node):
        state = State({}, accelerated=frame.state.accelerated)
        inner = Frame(frame.interpreter, state, closure=(frame, *frame.closure), caller=frame)
        inner.test, inner.shim = frame.test, info.shim
        run_body(inner, [item for item in node.body if not isinstance(item, nodes.DEFINITIONS)])
        for item in node.body:
            if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)):
                define(inner, item)
            elif isinstance(item, ast.ClassDef):
                _class(inner, item)
        if frame.info is not None:
            frame.interpreter.defined(frame, info, (frame, *frame.closure))


def _global(frame: Frame, node: ast.Global | ast.Nonlocal) -> None:
    for name in node.names:
        frame.state.env[name] = UNKNOWN


def _leave_loop(frame: Frame, node: ast.Break | ast.Continue) -> None:
    if frame.loops:
        loop = frame.loops[-1]
        (loop.breaks if isinstance(node, ast.Break) else loop.continues).append(frame.state.copy())
        loop.skips = loop.skips or (isinstance(node, ast.Continue) and frame.chances > loop.chances)
    frame.state.dead = True


# -- branches ----------------------------------------------------------------------------------------------------------


def _if(frame: Frame, node: ast.If) -> None:
    named = predicates.keep(frame, node.test)
    flag = conditions.condition(frame, node.test)
    frame.checking = not node.orelse and isinstance(node.body[-1], ast.Raise)
    evaluate_test(frame, node.test)
    frame.checking, frame.conditions = False, None
    known = conditions.truth(frame, flag)
    if known is not None:
        run_body(frame, node.body if known else node.orelse)
        return
    before = frame.state
    chance = loop_invariance.varies(frame, node.test)
    frame.branches += 1
    frame.chances += chance
    conditions.side(frame, before, node.test, flag, True)
    run_body(frame, node.body)
    then = frame.state
    conditions.side(frame, before, node.test, flag, False)
    run_body(frame, node.orelse)
    frame.branches -= 1
    frame.chances -= chance
    other = frame.state
    for observer in events.heard(frame, "on_branch"):
        observer.on_branch(frame, node, before, then, other)
    conditions.rejoined(named, before, then, other)
    device_conditions.settle(node.test, before, then, other)
    conditions.meet(frame, before, device_conditions.decides(flag), then, other)


def _try(frame: Frame, node: ast.Try) -> None:
    before = frame.state.copy()
    outer_tried, frame.tried = frame.tried, frame.tried or contexts.tries_device(node)
    outer_shim, frame.shim = frame.shim, frame.shim or contexts.tries_versions(node)
    run_body(frame, node.body)
    frame.tried = outer_tried
    run_body(frame, node.orelse)
    state = frame.state
    for position, handler in enumerate(node.handlers):
        frame.state = merge(before.copy(), state.copy(), PathTaken("try", frame.at(node)))
        frame.state.dead = False
        if handler.name:
            frame.state.env[handler.name] = UNKNOWN
        outer, frame.handler = frame.handler, True
        run_body(frame, handler.body)
        frame.handler = outer
        state = merge(state, frame.state, PathTaken("except", frame.at(node), position))
    frame.state, frame.shim = state, outer_shim
    if node.finalbody:
        dead, frame.state.dead = frame.state.dead, False
        run_body(frame, node.finalbody)
        frame.state.dead = frame.state.dead or dead


def _with(frame: Frame, node: ast.With | ast.AsyncWith) -> None:
    outer, outer_silent = frame.default_device, frame.silent
    for item in node.items:
        value = evaluate(frame, item.context_expr)
        path = names.called(item.context_expr)
        place = contexts.default_device(frame, item.context_expr, value)
        frame.default_device = frame.default_device if place is None else place
        if path.rpartition(".")[2] in ("raises", "assertRaises", "assertRaisesRegex"):
            # what fails here is meant to
            frame.silent = True
        if item.optional_vars is not None:
            bind(frame, item.optional_vars, UNKNOWN, item.context_expr)
    faked = contexts.fakes(frame, node) and not frame.state.accelerated
    frame.state.accelerated = frame.state.accelerated or faked
    run_body(frame, node.body)
    frame.default_device, frame.silent = outer, outer_silent
    frame.state.accelerated = frame.state.accelerated and not faked


def _match(frame: Frame, node: ast.Match) -> None:
    evaluate(frame, node.subject)
    before = frame.state
    joined = before.copy()
    frame.branches += 1
    frame.chances += 1
    for position, case in enumerate(node.cases):
        frame.state = before.copy()
        for part in ast.walk(case.pattern):
            name = getattr(part, "name", None) or getattr(part, "rest", None)
            if isinstance(name, str):
                frame.state.env[name] = UNKNOWN
        if isinstance(case.pattern, ast.MatchValue) and conditions.names_accelerator(case.pattern.value):
            frame.state.accelerated = True
        run_body(frame, case.body)
        joined = merge(frame.state, joined, PathTaken("case", frame.at(node), position))
    frame.branches -= 1
    frame.chances -= 1
    frame.state = joined


# -- loops -------------------------------------------------------------------------------------------------------------


def _for(frame: Frame, node: ast.For | ast.AsyncFor) -> None:
    iterated = evaluate(frame, node.iter)
    item = taken(frame, node.iter, iterated, node.target, node)
    if item is ELEMENT:
        return
    listed = iterated.items or () if isinstance(iterated, Sequence) else ()
    single = frame.interpreter.loop_text(node).single
    if single and listed:
        item = listed[0]
    for observer in events.heard(frame, "on_rounds"):
        observer.on_rounds(frame, node, item)

    def begin() -> None:
        for value in item.items or () if isinstance(item, Sequence) else (item,):
            frame.state.forget(value)
        bind(frame, node.target, each(item, node.lineno), node.target)
        frame.state.accelerated = accelerated or conditions.counts(frame, node.iter)

    accelerated = frame.state.accelerated
    once = single or runs_once(node.iter, iterated)
    _loop(frame, node, begin, is_step_loop(frame, node, iterated), once, runs=bool(listed) or runs(node.iter))
    frame.state.accelerated = accelerated


def _while(frame: Frame, node: ast.While) -> None:
    def begin() -> None:
        evaluate_test(frame, node.test)
        frame.state.assume(conditions.condition(frame, node.test), True)

    _loop(frame, node, begin, is_step_loop(frame, node, UNKNOWN), once=frame.interpreter.loop_text(node).single)


def _loop(
    frame: Frame, node: ast.For | ast.AsyncFor | ast.While, begin: Callable[[], None], step: bool, once: bool = False,
    runs: bool = False,
) -> None:  # fmt: skip
    """Run a loop's body until what holds at its start holds at its end; only the last run speaks.

    ``once``: there is one round at most; ``runs``: there surely is one.
    """
    entry = frame.state
    interpreter = frame.interpreter
    at = frame.at(node)
    start = entry
    for outer in frame.loops if step else ():
        outer.encloses |= interpreter.loop_text(outer.node).leads_to(node)
    loop = Loop(node, step, frame.branches, chances=frame.chances)
    if not interpreter.muted and not once:
        with interpreter.quiet():
            passed = [entry, widening.renewed(_iteration(frame, node, start.copy(), begin, loop), entry)]
            while len(passed) <= _MOST_ROUNDS and widening.moved(passed[-2], passed[-1]):
                # what moved in one round may move something else in the next
                again = Loop(node, step, frame.branches, chances=frame.chances)
                passed.append(widening.renewed(_iteration(frame, node, passed[-1].copy(), begin, again), entry))
        loop = Loop(node, step, frame.branches, loop.encloses, frame.chances)
        start = merge(passed[1], entry.copy(), LoopRound(at))
        for number, (before, later) in enumerate(itertools.pairwise(passed[1:]), 1):
            if widening.moved(before, later):
                start = merge(later, start, LoopRound(at, number))
        start = widening.parted(start, entry, passed[1], frame.interpreter.loop_text(node).changes)
        start.facts = {
            known: holds for known, holds in entry.facts.items() if not isinstance(known, LoopRound) or known.loop != at
        }
        start.dead = False
    end = _iteration(frame, node, start.copy(), begin, loop)
    if step and not loop.encloses and not interpreter.muted:
        frame.loops.append(loop)
        for observer in events.heard(frame, "on_step_loop"):
            observer.on_step_loop(frame, node)
        frame.loops.pop()
    # what comes after is read as if the loop ran at least once
    if end.dead and loop.breaks:
        # it is always left in the middle
        left, breaks = loop.breaks[-1], loop.breaks[:-1]
    elif end.dead and runs:
        # every round leaves the function
        frame.state = end
        return
    else:
        frame.state = end if not end.dead else entry
        frame.state.dead = False
        run_body(frame, node.orelse)
        left, breaks = frame.state, loop.breaks
    widening.forget(left, at)
    for position, state in enumerate(reversed(breaks)):
        widening.forget(state, at)
        left = rejoin(left, state, PathTaken("break", at, position))
    frame.state = left


def _iteration(
    frame: Frame, node: ast.For | ast.AsyncFor | ast.While, state: State, begin: Callable[[], None], loop: Loop
) -> State:
    """One round: the state at its end; those in which it left the loop are kept there."""
    frame.state = state
    frame.component(DeviceQueue).enter(frame, loop)
    begin()
    run_body(frame, node.body)
    frame.loops.pop()
    end = frame.state
    # the last first: it hangs on what the ones before left over
    for position, left in enumerate(reversed(loop.continues)):
        end = rejoin(end, left, PathTaken("continue", frame.at(node), position))
    return end


_STATEMENTS: dict[type[ast.stmt], Callable[..., None]] = {
    ast.Expr: _expression,
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.Delete: _delete,
    ast.Return: _return,
    ast.Raise: _raise,
    ast.Assert: _assert,
    ast.Import: _import,
    ast.ImportFrom: _import,
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.ClassDef: _class,
    ast.Global: _global,
    ast.Nonlocal: _global,
    ast.Break: _leave_loop,
    ast.Continue: _leave_loop,
    ast.If: _if,
    ast.Try: _try,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Match: _match,
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.While: _while,
}
if hasattr(ast, "TryStar"):
    _STATEMENTS[ast.TryStar] = _try
