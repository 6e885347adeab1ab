"""Expressions: the value of each, and the sites it makes on the way."""

from __future__ import annotations

import ast
from collections.abc import Callable

from devlint import device
from devlint.device import Kind, PathTaken, Role, Topic
from devlint.flow.catalog.libraries import canonical
from devlint.flow.core import events
from devlint.flow.core.call import Call, Loop
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.registry import MODELS
from devlint.flow.domain.heap import either, made_since
from devlint.flow.domain.join import join
from devlint.flow.domain.objects import Function, Instance, Module
from devlint.flow.domain.tensors import Batches, DeviceValue, Loader, Tensor, as_tensor
from devlint.flow.domain.truths import accelerates
from devlint.flow.domain.values import CONTAINERS, UNKNOWN, Const, Mapping, Named, Opaque, Sequence, Unknown, Value
from devlint.flow.evaluation import calls, conditions, constant_folding, device_conditions, predicates
from devlint.flow.evaluation.assignment import bind
from devlint.flow.evaluation.attributes import attribute, by_star
from devlint.flow.evaluation.operators import operate
from devlint.flow.syntax import device_tests, nodes
from devlint.flow.syntax.device_tests import asks_for_array
from devlint.flow.transfer import api_use, containers, device_queue, placement
from devlint.flow.transfer.device_queue import DeviceQueue
from devlint.flow.transfer.escapes import Escapes
from devlint.flow.transfer.indexing import subscript
from devlint.flow.transfer.iteration import each, iterate, of_all, rounds_of, runs_once, taken


def evaluate(frame: Frame, node: ast.expr) -> Value:
    """The value of an expression."""
    handler = _EXPRESSIONS.get(type(node))
    value = handler(frame, node) if handler is not None else UNKNOWN
    return frame.state.content(value) if type(value) in CONTAINERS else value


def _constant(frame: Frame, node: ast.Constant) -> Value:
    if frame.asking is not None and isinstance(node.value, str):
        api_use.name(frame, node, node.value)
    return Const(node.value)


def _plain(frame: Frame, node: ast.Name) -> Value:
    value = _name(frame, node)
    if frame.interpreter.watch is not None:
        frame.interpreter.watch(frame, node, value)
    if type(value) is Named:
        api_use.name(frame, node, value.path)
    return value


def _attribute(frame: Frame, node: ast.Attribute) -> Value:
    value = _bare(frame, node)
    if type(value) is Named:
        api_use.name(frame, node, value.path)
        return value
    for observer in events.heard(frame, "on_attribute"):
        observer.on_attribute(frame, node, value)
    return value


def evaluate_test(frame: Frame, node: ast.expr) -> Value:
    """The value of an expression of which the truth is asked for."""
    value = _boolean(frame, node, True) if isinstance(node, ast.BoolOp) else evaluate(frame, node)
    _ask(frame, node, value)
    if not isinstance(node, ast.BoolOp):
        device_queue.tested(frame, node, value)
    return value


def _ask(frame: Frame, node: ast.expr, value: Value) -> None:
    for observer in events.heard(frame, "on_test"):
        observer.on_test(frame, node, value)


def _bare(frame: Frame, node: ast.expr) -> Value:
    """The value of an expression which, if it is a name, is a part of what the code speaks of."""
    if isinstance(node, ast.Name):
        value = _name(frame, node)
    elif isinstance(node, ast.Attribute):
        value = attribute(frame, node, _bare(frame, node.value))
    else:
        return evaluate(frame, node)
    if frame.interpreter.watch is not None:
        frame.interpreter.watch(frame, node, value)
    return value


def _name(frame: Frame, node: ast.Name) -> Value:
    value = frame.lookup(node.id)
    if value is not None:
        if isinstance(value, Function):
            for observer in events.heard(frame, "on_function"):
                observer.on_function(frame, node, value.info)
        return value
    if node.id in MODELS.members("builtins"):
        return Named(f"builtins.{node.id}")
    return by_star(frame, node.id) if frame.interpreter.index.star_modules else UNKNOWN


def _call(frame: Frame, node: ast.Call) -> Value:
    receiver = function = None
    if isinstance(node.func, ast.Attribute):
        receiver = _bare(frame, node.func.value)
        if isinstance(receiver, Named):
            api_use.name(frame, node.func, canonical(f"{receiver.path}.{node.func.attr}"), node)
    else:
        function = _bare(frame, node.func)
        if isinstance(function, Named):
            api_use.name(frame, node.func, function.path, node)
    for observer in events.heard(frame, "on_arguments"):
        observer.on_arguments(frame, node)
    outer, frame.asking = frame.asking, node if device_tests.takes_types(node) else None
    call = _arguments(frame, node)
    frame.asking = outer
    for observer in events.heard(frame, "on_call"):
        observer.on_call(frame, call)
    if receiver is not None and isinstance(node.func, ast.Attribute):
        target = node.func
        if frame.interpreter.watch is not None and isinstance(receiver, (Module, Instance)):
            frame.interpreter.watch(frame, target, attribute(frame, target, receiver))
        return calls.method(frame, call, receiver, target)
    return calls.function(frame, call, function or UNKNOWN)


def _arguments(frame: Frame, node: ast.Call) -> Call:
    """The call with its arguments evaluated."""
    nodes: list[ast.expr] = []
    values: list[Value] = []
    opened = starred = False
    for argument in node.args:
        if not isinstance(argument, ast.Starred):
            nodes.append(argument)
            values.append(evaluate(frame, argument))
            continue
        value = evaluate(frame, argument.value)
        if isinstance(value, Sequence) and value.items is not None:
            nodes += [argument] * len(value.items)
            values += value.items
        else:
            starred = True
            nodes.append(argument)
            values.append(value.item if isinstance(value, Sequence) else UNKNOWN)
    keywords: dict[str, Value] = {}
    keyword_nodes: dict[str, ast.expr] = {}
    unknown: tuple[tuple[ast.expr, Value], ...] = ()
    for keyword in node.keywords:
        value = evaluate(frame, keyword.value)
        if keyword.arg is None:
            if not containers.spread(keywords, value):
                opened, unknown = True, (*unknown, (keyword.value, value))
        else:
            keywords[keyword.arg] = value
            keyword_nodes[keyword.arg] = keyword.value
    return Call(node, tuple(values), tuple(nodes), keywords, keyword_nodes, opened, starred, unknown)


def _binary(frame: Frame, node: ast.BinOp) -> Value:
    left, right = evaluate(frame, node.left), evaluate(frame, node.right)
    if isinstance(node.op, ast.Sub):
        for observer in events.heard(frame, "on_subtraction"):
            observer.on_subtraction(frame, node, left, right)
    return constant_folding.of_literals(node, left, right) or operate(frame, node, node.left, left, node.right, right)


def _unary(frame: Frame, node: ast.UnaryOp) -> Value:
    if isinstance(node.op, ast.Not):
        evaluate_test(frame, nodes.denied(node)[0])
        return conditions.flag_of(frame, node) or UNKNOWN
    value = evaluate(frame, node.operand)
    if isinstance(value, Tensor):
        return placement.derived(value, rank=value.rank)
    if isinstance(value, Opaque) and value.hint == "tensor":
        return as_tensor(value)
    if isinstance(node.op, ast.USub) and isinstance(value, Const):
        return Const(-value.value) if isinstance(value.value, (int, float)) else UNKNOWN
    return value if isinstance(value, Const) else UNKNOWN


def _boolean(frame: Frame, node: ast.BoolOp, tested: bool = False) -> Value:
    """The value of an operation of which the truth is asked for, where it is ``tested``, or only that of its parts."""
    values: list[Value] = []
    accelerated, shim = frame.state.accelerated, frame.shim
    for part in node.values:
        # `given or function` stands for a function that may be called later; nobody asks yet whether the last is true
        last = part is node.values[-1]
        values.append(evaluate(frame, part) if last and not tested else evaluate_test(frame, part))
        if last and not tested and isinstance(node.op, ast.And):
            _ask(frame, part, values[-1])
        flag = conditions.condition(frame, part)
        # what follows is evaluated only where this holds, or does not
        frame.shim = frame.shim or Topic.VERSION in flag.condition.topics
        if accelerates(flag if isinstance(node.op, ast.And) else flag.negated()):
            frame.state.accelerated = True
    frame.state.accelerated, frame.shim = accelerated, shim
    if isinstance(node.op, ast.Or):
        _fallback(frame, node.values[-1])
    whole = conditions.flag_of(frame, node)
    if whole is not None and not any(isinstance(value, (Tensor, Module)) for value in values):
        return whole
    result = values[0]
    for position, value in enumerate(values[1:]):
        result = join(result, value, PathTaken("operand", frame.at(node), position))
    return result


def _fallback(frame: Frame, node: ast.expr) -> None:
    """A literal accelerator which is taken where nothing else was given."""
    if not frame.state.accelerated:
        api_use.device(frame, node, "fallback")


def _compare(frame: Frame, node: ast.Compare) -> Value:
    outer, frame.comparing = frame.comparing, True
    left = evaluate(frame, node.left)
    rights = [evaluate(frame, comparator) for comparator in node.comparators]
    frame.comparing = outer
    for observer in events.heard(frame, "on_comparison"):
        observer.on_comparison(frame, node, [left, *rights])
    identity_test = isinstance(node.ops[0], (ast.Is, ast.IsNot, ast.In, ast.NotIn))
    if len(rights) == 1 and not identity_test:
        result = operate(frame, node, node.left, left, node.comparators[0], rights[0])
        if not isinstance(result, Unknown):
            return result
    return conditions.flag_of(frame, node) or UNKNOWN


def _conditional(frame: Frame, node: ast.IfExp) -> Value:
    outer = frame.conditions
    named = predicates.keep(frame, node.test)
    evaluate_test(frame, node.test)
    flag = conditions.condition(frame, node.test)
    frame.conditions = outer
    known = conditions.truth(frame, flag)
    if known is not None:
        return evaluate(frame, node.body if known else node.orelse)
    before = frame.state
    then_state = conditions.side(frame, before, node.test, flag, True)
    then = evaluate(frame, node.body)
    other_state = conditions.side(frame, before, node.test, flag, False)
    other = evaluate(frame, node.orelse)
    if isinstance(node.orelse, ast.Constant) and not isinstance(node.body, ast.Constant):
        _fallback(frame, node.orelse)
    then, other = device_conditions.left_alone(node.test, before, then, other)
    then = _beside(then, other) if accelerates(flag.negated()) else then
    other = _beside(other, then) if accelerates(flag) else other
    _escape(frame, node, then, other)
    for observer in events.heard(frame, "on_choice"):
        observer.on_choice(frame, node, flag, then, other)
    conditions.rejoined(named, before, then_state, other_state)
    flag, apart = device_conditions.decides(flag), made_since(before.heap, then, other)
    first, second = (then, other) if flag.positive else (other, then)
    conditions.meet(frame, before, flag, then_state, other_state)
    alike = either(before.heap, before.heap, first, second) if apart else None
    return alike or join(first, second, flag.condition)


def _beside(value: Value, there: Value) -> Value:
    """What is taken where no accelerator is used: beside what is on the host even where one is, it is there, too."""
    fetched = isinstance(there, Tensor) and there.device.kind is Kind.CPU
    given = isinstance(value, (Tensor, Opaque)) and as_tensor(value).device.role is Role.INPUT
    return UNKNOWN if fetched and given else value


def _escape(frame: Frame, node: ast.IfExp, then: Value, other: Value) -> None:
    """What is a new tensor on one path, and on the other something unknown in its place, cannot be followed further."""
    if frame.after_init and asks_for_array(node.test):
        for value, beside in ((then, other), (other, then)):
            if isinstance(beside, Unknown) or (isinstance(beside, Opaque) and beside.derived):
                frame.component(Escapes).tensors((value,))


def _sequence(frame: Frame, node: ast.Tuple | ast.List) -> Value:
    if any(isinstance(element, ast.Starred) for element in node.elts):
        held = [(element, evaluate(frame, element)) for element in node.elts]
        for observer in events.heard(frame, "on_row"):
            observer.on_row(
                frame,
                node,
                [(part, iterate(value) if isinstance(part, ast.Starred) else value) for part, value in held],
            )
        return containers.made(frame, Sequence(None, UNKNOWN, isinstance(node, ast.List)))
    items = tuple(evaluate(frame, element) for element in node.elts)
    if isinstance(node, ast.Tuple) and len(items) > 1:
        for observer in events.heard(frame, "on_row"):
            observer.on_row(frame, node, list(zip(node.elts, items, strict=True)))
    return containers.made(frame, Sequence(items, containers.common(items), isinstance(node, ast.List)))


def _mapping(frame: Frame, node: ast.Dict) -> Value:
    items: list[tuple[object, Value]] = []
    others: list[Value] = []
    for key, value in zip(node.keys, node.values, strict=True):
        held = evaluate(frame, value)
        if isinstance(key, ast.Constant):
            items.append((key.value, held))
        else:
            if key is not None:
                evaluate(frame, key)
            others.append(held)
    return containers.made(frame, Mapping(tuple(items), containers.common(others)))


def _comprehension(frame: Frame, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Value:
    value = _comprehended(frame, node, node.elt)
    times = rounds_of(frame, node.generators)
    items = (value,) * times if times and isinstance(node, ast.ListComp) else None
    return containers.made(frame, Sequence(items, value, isinstance(node, ast.ListComp)))


def _mapping_comprehension(frame: Frame, node: ast.DictComp) -> Value:
    value = _comprehended(frame, node, node.value)
    return value if isinstance(value, Batches) else containers.made(frame, Mapping((), value))


def _comprehended(
    frame: Frame, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, element: ast.expr
) -> Value:
    """The value of one element, made in every round; the names that the generators bind are gone afterwards."""
    outer, depth = frame.state, len(frame.loops)
    frame.state = outer.copy()
    for generator in node.generators:
        iterated = evaluate(frame, generator.iter)
        if not runs_once(generator.iter, iterated):
            step = isinstance(iterated, Loader)
            for around in frame.loops if step else ():
                around.encloses |= frame.interpreter.loop_text(around.node).leads_to(node)
            loop = Loop(node, step, frame.branches, chances=frame.chances)
            frame.component(DeviceQueue).enter(frame, loop)
        item = each(taken(frame, generator.iter, iterated, generator.target, element), generator.target.lineno)
        bind(frame, generator.target, item, generator.target)
        frame.state.accelerated = frame.state.accelerated or conditions.counts(frame, generator.iter)
        for test in generator.ifs:
            evaluate_test(frame, test)
            frame.state.assume(conditions.condition(frame, test), True)
            for loop in frame.loops[depth:]:
                loop.skips = True
    value = evaluate(frame, element)
    if isinstance(node, ast.DictComp):
        evaluate(frame, node.key)
    del frame.loops[depth:]
    heap = frame.state.heap
    frame.state = outer
    outer.heap = heap
    return of_all(value)


def _subscript(frame: Frame, node: ast.Subscript) -> Value:
    return subscript(frame, node, evaluate(frame, node.value))


def _named_expression(frame: Frame, node: ast.NamedExpr) -> Value:
    value = evaluate(frame, node.value)
    bind(frame, node.target, value, node.value)
    return value


def _slice(frame: Frame, node: ast.Slice) -> Value:
    for bound in filter(None, (node.lower, node.upper, node.step)):
        device_queue.numbered(frame, bound, bound, evaluate(frame, bound), "slice")
    return UNKNOWN


def _lambda(frame: Frame, node: ast.Lambda) -> Value:
    inner = Frame(frame.interpreter, frame.state.copy(), frame.info, frame.owner, frame.closure, frame.inlined, frame)
    for argument in nodes.parameters(node.args):
        inner.state.env[argument.arg] = Opaque(
            f"{frame.name}:{argument.arg}@{node.lineno}:{node.col_offset}", argument.arg, role=device.Role.INPUT
        )
    inner.body = node
    evaluate(inner, node.body)
    return UNKNOWN


def _inner(frame: Frame, node: ast.Await | ast.Starred | ast.YieldFrom) -> Value:
    return evaluate(frame, node.value)


def _yield(frame: Frame, node: ast.Yield) -> Value:
    if node.value is not None:
        evaluate(frame, node.value)
    return UNKNOWN


def _joined(frame: Frame, node: ast.JoinedStr) -> Value:
    for value in node.values:
        if isinstance(value, ast.FormattedValue):
            held = evaluate(frame, value.value)
            device_queue.shown(frame, value, value.value, held)
            if isinstance(held, Opaque) and len(node.values) == 2 and device_tests.is_prefix(node.values[0]):
                # f"cuda:{rank}" is one device for one rank
                for observer in events.heard(frame, "on_device_index"):
                    observer.on_device_index(frame, node, held, "")
                return DeviceValue(device.symbol(f"cuda:{held.key}", f"cuda:{{{held.text}}}"), node)
    return UNKNOWN


_EXPRESSIONS: dict[type[ast.expr], Callable[..., Value]] = {
    ast.Constant: _constant,
    ast.Name: _plain,
    ast.Attribute: _attribute,
    ast.Call: _call,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.BoolOp: _boolean,
    ast.Compare: _compare,
    ast.IfExp: _conditional,
    ast.Tuple: _sequence,
    ast.List: _sequence,
    ast.Set: _sequence,
    ast.Dict: _mapping,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.DictComp: _mapping_comprehension,
    ast.Subscript: _subscript,
    ast.Slice: _slice,
    ast.NamedExpr: _named_expression,
    ast.Lambda: _lambda,
    ast.Await: _inner,
    ast.Starred: _inner,
    ast.YieldFrom: _inner,
    ast.Yield: _yield,
    ast.JoinedStr: _joined,
}
