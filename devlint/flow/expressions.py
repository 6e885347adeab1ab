"""Expressions: the value of each, and the sites it makes on the way."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from devlint import device
from devlint.device import Role
from devlint.flow import calls, guards, names, operations, transfers
from devlint.flow.frame import Call, Frame
from devlint.flow.index import DEVICE_NAME
from devlint.flow.indexing import item
from devlint.flow.state import merge
from devlint.flow.values import (
    UNKNOWN,
    Batches,
    Const,
    DeviceValue,
    Function,
    Instance,
    Loader,
    Mapping,
    Module,
    Named,
    Opaque,
    Sequence,
    Tensor,
    Unknown,
    Value,
    add_item,
    as_tensor,
    join,
)
from devlint.sites import Step

ELEMENT = Const("no elements")
"""What iterating something empty yields."""
_PYTHON_ATTRIBUTES = frozenset(
    {"shape", "dtype", "ndim", "layout", "itemsize", "nbytes", "is_cuda", "requires_grad", "names"}
)
_SAME_ATTRIBUTES = frozenset({"data", "grad", "T", "mT", "H", "mH", "real", "imag"})


def evaluate(frame: Frame, node: ast.expr) -> Value:
    """The value of an expression."""
    handler = _EXPRESSIONS.get(type(node))
    return handler(frame, node) if handler is not None else UNKNOWN


def _constant(frame: Frame, node: ast.Constant) -> Value:
    return Const(node.value)


def _name(frame: Frame, node: ast.Name) -> Value:
    value = frame.lookup(node.id)
    if value is not None:
        return value
    return Named(f"builtins.{node.id}") if node.id in calls.BUILTINS else UNKNOWN


def _attribute(frame: Frame, node: ast.Attribute) -> Value:
    return attribute(frame, node, evaluate(frame, node.value))


def attribute(frame: Frame, node: ast.Attribute, base: Value) -> Value:
    """The value of ``base.attr``."""
    attr = node.attr
    if isinstance(base, Named):
        return Named(names.canonical(f"{base.path}.{attr}"))
    if isinstance(base, (Tensor, Batches)):
        return _tensor_attribute(node, base)
    if isinstance(base, (Module, Instance)):
        return _object_attribute(frame, node, base)
    if isinstance(base, Opaque):
        return _opaque_attribute(frame, node, base)
    if isinstance(base, Sequence) and attr in ("values", "indices"):
        return base.item
    if isinstance(base, DeviceValue) and attr == "type":
        return base
    return UNKNOWN


def _tensor_attribute(node: ast.Attribute, base: Tensor | Batches) -> Value:
    tensor = as_tensor(base)
    if node.attr == "device":
        return DeviceValue(tensor.device, node, tensor if tensor.factory else None)
    if node.attr in _PYTHON_ATTRIBUTES:
        return UNKNOWN
    if isinstance(base, Batches):
        return base
    return replace(tensor, rank=None) if node.attr in _SAME_ATTRIBUTES else UNKNOWN


def _object_attribute(frame: Frame, node: ast.Attribute, base: Module | Instance) -> Value:
    attr = node.attr
    held = frame.state.heap.get((base.oid, attr))
    if isinstance(held, Value):
        return held
    if base.cls is not None:
        method = base.cls.method(attr)
        if method is not None:
            if "property" in method.decorators or any(name.endswith("cached_property") for name in method.decorators):
                return _opaque(frame, node, f"{base.oid}.{attr}", "device" if DEVICE_NAME.search(attr) else "")
            return Function(method, (), base)
        if base.cls.is_module and attr == "training":
            return Opaque(f"{base.oid}.training", "self.training")
        return _opaque(frame, node, f"{base.oid}.{attr}", "device" if DEVICE_NAME.search(attr) else "")
    if isinstance(base, Module) and attr in ("weight", "bias"):
        return Tensor(frame.place_of(base), many=True, story=frame.story_of(base))
    return UNKNOWN


def _opaque_attribute(frame: Frame, node: ast.Attribute, base: Opaque) -> Value:
    attr = node.attr
    held = frame.state.heap.get((base.key, attr))
    if isinstance(held, Value):
        return held
    if attr == "device" and base.hint != "number":
        # the device of an argument is one symbol, whether it is asked for or met
        role = Role.INPUT if base.hint == "tensor" or base.role is Role.INPUT else Role.DEVICE
        if base.hint == "tensor" or role is Role.INPUT:
            return DeviceValue(device.symbol(base.key, base.text, role), node)
        return DeviceValue(device.symbol(f"{base.key}.device", f"{base.text}.device"), node)
    if base.hint == "tensor":
        if attr in _PYTHON_ATTRIBUTES:
            return UNKNOWN
        return replace(as_tensor(base), rank=None) if attr in _SAME_ATTRIBUTES else UNKNOWN
    if attr in ("shape", "dtype", "ndim"):
        return UNKNOWN
    inner = _opaque(frame, node, f"{base.key}.{attr}", "device" if DEVICE_NAME.search(attr) else "")
    return inner if inner.hint == "device" else replace(inner, role=base.role, derived=base.derived)


def _opaque(frame: Frame, node: ast.Attribute, key: str, hint: str) -> Opaque:
    return Opaque(key, names.dotted(node) or node.attr, hint, node=node)


def assign_attribute(frame: Frame, target: ast.Attribute, value: Value, node: ast.AST) -> None:
    """``base.attr = value``."""
    base = evaluate(frame, target.value)
    key: object | None = (
        base.oid if isinstance(base, (Module, Instance)) else base.key if isinstance(base, Opaque) else None
    )
    if key is None:
        return
    if isinstance(value, Unknown):
        hint = "device" if DEVICE_NAME.search(target.attr) else ""
        value = Opaque(f"{key}.{target.attr}@{target.lineno}", names.dotted(target) or target.attr, hint, node=target)
    if isinstance(value, Const):
        value = named_device(frame, target.attr, value, node)
    if isinstance(value, Tensor) and isinstance(base, Module) and base.text == "self" and frame.info is not None:
        value = _kept_tensor(frame, target, value, node)
    if isinstance(value, Loader) and isinstance(base, Instance):
        frame.machine.loaders.escape((value,))
    frame.state.heap[(key, target.attr)] = value


def named_device(frame: Frame, name: str, value: Const, node: ast.AST) -> Value:
    """A string that is given the name of a device is one."""
    place = device.parse(value.value) if isinstance(value.value, str) and isinstance(node, ast.Constant) else None
    if place is None or not isinstance(value.value, str) or not DEVICE_NAME.search(name):
        return value
    transfers.literal(frame, node, "variable")
    return DeviceValue(place, node)


def _kept_tensor(frame: Frame, target: ast.Attribute, value: Tensor, node: ast.AST) -> Tensor:
    """A tensor that a module keeps: a parameter or buffer moves with it, anything else stays behind."""
    if value.buffer or frame.info is None or frame.owner is None or not isinstance(node, ast.expr):
        return value
    held = frame.state.heap.get(((-frame.owner.node.lineno), target.attr))
    if isinstance(held, Tensor) and held.buffer:
        return replace(value, buffer=True)
    if frame.info.name != "__init__" or value.attribute is not None:
        return value
    step = Step(node, f"`self.{target.attr}` is kept here, unregistered")
    kept = replace(value, attribute=step, attribute_of=(frame.owner.name, target.attr))
    frame.machine.attributes.declare(frame, node, kept, target.attr)
    return kept


def _call(frame: Frame, node: ast.Call) -> Value:
    if isinstance(node.func, ast.Attribute):
        receiver = evaluate(frame, node.func.value)
        function: Value | None = None
    else:
        receiver, function = None, evaluate(frame, node.func)
    positional: list[Value] = []
    opened = starred = False
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            value = evaluate(frame, argument.value)
            if isinstance(value, Sequence) and value.items is not None:
                positional.extend(value.items)
            else:
                starred = True
                positional.append(value.item if isinstance(value, Sequence) else UNKNOWN)
        else:
            positional.append(evaluate(frame, argument))
    keywords: dict[str, Value] = {}
    keyword_nodes: dict[str, ast.expr] = {}
    for keyword in node.keywords:
        value = evaluate(frame, keyword.value)
        if keyword.arg is None:
            opened = opened or not _spread(keywords, value)
        else:
            keywords[keyword.arg] = value
            keyword_nodes[keyword.arg] = keyword.value
    call = Call(node, tuple(positional), tuple(node.args), keywords, keyword_nodes, opened, starred)
    if receiver is not None and isinstance(node.func, ast.Attribute):
        return calls.method(frame, call, receiver, node.func, lambda: attribute(frame, node.func, receiver))  # type: ignore[arg-type]  # an ast.Attribute, seen above
    return calls.function(frame, call, function or UNKNOWN)


def _spread(keywords: dict[str, Value], value: Value) -> bool:
    """Put the entries of ``**value`` among the keywords, where they are all known."""
    if not isinstance(value, Mapping) or value.other is not UNKNOWN:
        return False
    keywords.update({key: held for key, held in value.items if isinstance(key, str)})
    return False


def operate(
    frame: Frame, node: ast.AST, left_node: ast.expr, left: Value, right_node: ast.expr, right: Value, inplace: bool = False
) -> Value:  # fmt: skip
    """The result of ``left <operator> right``."""
    if isinstance(left, Const) and isinstance(right, Const):
        return UNKNOWN
    if not isinstance(left, (Tensor, Batches)) and not isinstance(right, (Tensor, Batches)):
        return _operate_other(left, right)
    operands = ((left_node, left, "left"), (right_node, right, "right"))
    return operations.elementwise(frame, node, _symbol(node), operands, inplace)


def _operate_other(left: Value, right: Value) -> Value:
    tensors = [value for value in (left, right) if isinstance(value, Opaque) and value.hint == "tensor"]
    if tensors:
        return (
            replace(as_tensor(tensors[0]), many=None, certain=True)
            if len(tensors) == 1
            else operations.blend(left, right)
        )
    if isinstance(left, Sequence) and isinstance(right, Sequence):
        items = left.items + right.items if left.items is not None and right.items is not None else None
        return Sequence(items, join(left.item, right.item, "either list"), left.mutable)
    if isinstance(left, Sequence) and isinstance(right, (Const, Opaque, Unknown)):
        return Sequence(None, left.item, left.mutable)
    return UNKNOWN


def _symbol(node: ast.AST) -> str:
    operator = getattr(node, "op", None) or (getattr(node, "ops", None) or [None])[0]
    return _SYMBOLS.get(type(operator), "operator")


_SYMBOLS: dict[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<",
    ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip


def _binary(frame: Frame, node: ast.BinOp) -> Value:
    return operate(frame, node, node.left, evaluate(frame, node.left), node.right, evaluate(frame, node.right))


def _unary(frame: Frame, node: ast.UnaryOp) -> Value:
    value = evaluate(frame, node.operand)
    if isinstance(node.op, ast.Not):
        return guards.flag_of(frame, node) or UNKNOWN
    if isinstance(value, Tensor):
        return operations.derived(value)
    if isinstance(value, Opaque) and value.hint == "tensor":
        return as_tensor(value)
    return value if isinstance(value, Const) else UNKNOWN


def _boolean(frame: Frame, node: ast.BoolOp) -> Value:
    values: list[Value] = []
    accelerated = frame.state.accelerated
    for part in node.values:
        values.append(evaluate(frame, part))
        if isinstance(node.op, ast.And) and guards.accelerates(guards.condition(frame, part)):
            # what follows is evaluated only where this holds
            frame.state.accelerated = True
    frame.state.accelerated = accelerated
    if isinstance(node.op, ast.Or):
        _fallback(frame, node.values[-1])
    flag = guards.flag_of(frame, node)
    if flag is not None and not any(isinstance(value, (Tensor, Module)) for value in values):
        return flag
    result = values[0]
    for position, value in enumerate(values[1:]):
        result = join(result, value, f"operand {position} at {node.lineno}:{node.col_offset}")
    return result


def _fallback(frame: Frame, node: ast.expr) -> None:
    """A literal accelerator which is taken where nothing else was given."""
    if not frame.state.accelerated:
        transfers.literal(frame, node, "fallback")


def _compare(frame: Frame, node: ast.Compare) -> Value:
    left = evaluate(frame, node.left)
    rights = [evaluate(frame, comparator) for comparator in node.comparators]
    identity_test = isinstance(node.ops[0], (ast.Is, ast.IsNot, ast.In, ast.NotIn))
    if len(rights) == 1 and not identity_test:
        result = operate(frame, node, node.left, left, node.comparators[0], rights[0])
        if not isinstance(result, Unknown):
            return result
    return guards.flag_of(frame, node) or UNKNOWN


def _conditional(frame: Frame, node: ast.IfExp) -> Value:
    evaluate(frame, node.test)
    flag = guards.condition(frame, node.test)
    known = guards.truth(frame, flag)
    if known is not None:
        return evaluate(frame, node.body if known else node.orelse)
    before = frame.state
    frame.state = then_state = before.copy()
    then_state.assume(flag, True)
    guards.refine(frame, node.test)
    then = evaluate(frame, node.body)
    frame.state = other_state = before.copy()
    other_state.assume(flag, False)
    other = evaluate(frame, node.orelse)
    if isinstance(node.orelse, ast.Constant) and not isinstance(node.body, ast.Constant):
        _fallback(frame, node.orelse)
    first, second = (then, other) if flag.positive else (other, then)
    joined = merge(then_state, other_state, flag.key) if flag.positive else merge(other_state, then_state, flag.key)
    before.become(joined)
    frame.state = before
    return join(first, second, flag.key)


def _sequence(frame: Frame, node: ast.Tuple | ast.List) -> Value:
    if any(isinstance(element, ast.Starred) for element in node.elts):
        for element in node.elts:
            evaluate(frame, element.value if isinstance(element, ast.Starred) else element)
        return Sequence(None, UNKNOWN, isinstance(node, ast.List))
    items = tuple(evaluate(frame, element) for element in node.elts)
    return Sequence(items, _common(items), isinstance(node, ast.List))


def _common(items: tuple[Value, ...]) -> Value:
    if not items:
        return UNKNOWN
    result = items[0]
    for value in items[1:]:
        if result is UNKNOWN:
            break
        result = add_item(result, value)
    return result


def _mapping(frame: Frame, node: ast.Dict) -> Value:
    items: list[tuple[object, Value]] = []
    other: Value = UNKNOWN
    for key, value in zip(node.keys, node.values, strict=True):
        held = evaluate(frame, value)
        if isinstance(key, ast.Constant):
            items.append((key.value, held))
        else:
            if key is not None:
                evaluate(frame, key)
            other = held
    return Mapping(tuple(items), other)


def _comprehension(frame: Frame, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Value:
    return Sequence(None, _comprehended(frame, node.generators, node.elt), isinstance(node, ast.ListComp))


def _mapping_comprehension(frame: Frame, node: ast.DictComp) -> Value:
    value = _comprehended(frame, node.generators, node.value)
    return value if isinstance(value, Batches) else Mapping((), value)


def _comprehended(frame: Frame, generators: list[ast.comprehension], element: ast.expr) -> Value:
    """The value of one element; the names that the generators bind are gone afterwards."""
    from devlint.flow.statements import bind

    outer = frame.state
    frame.state = outer.copy()
    for generator in generators:
        bind(frame, generator.target, iterate(frame, evaluate(frame, generator.iter)), generator.target)
        for test in generator.ifs:
            evaluate(frame, test)
            frame.state.assume(guards.condition(frame, test), True)
    value = evaluate(frame, element)
    heap = frame.state.heap
    frame.state = outer
    outer.heap = heap
    return value


def iterate(frame: Frame, value: Value) -> Value:
    """What one round of ``for x in value`` binds."""
    if isinstance(value, Loader):
        return Batches(value.oid, value.batches)
    if isinstance(value, Batches):
        return value
    if isinstance(value, Sequence):
        if value.items is not None and len(value.items) == 0 and not value.mutable:
            return ELEMENT
        return value.item
    if isinstance(value, Tensor):
        return item(value)
    if isinstance(value, Opaque) and value.hint == "tensor":
        return item(as_tensor(value))
    if isinstance(value, Opaque) and value.hint == "tensors":
        return replace(value, key=f"{value.key}[]", text=f"an item of {value.text}", hint="tensor")
    if isinstance(value, Opaque) and value.role is Role.INPUT:
        return replace(value, key=f"{value.key}[]", text=f"an item of {value.text}")
    return UNKNOWN


def part_of(frame: Frame, value: Value, position: int) -> Value:
    """What the name at ``position`` gets when ``value`` is unpacked."""
    if isinstance(value, Opaque) and value.hint != "tensor" and value.role is Role.INPUT:
        return replace(value, key=f"{value.key}[{position}]", text=f"{value.text}[{position}]")
    if isinstance(value, (Batches, Tensor, Sequence, Opaque)):
        return iterate(frame, value)
    return UNKNOWN


def _subscript(frame: Frame, node: ast.Subscript) -> Value:
    from devlint.flow.indexing import subscript

    return subscript(frame, node, evaluate(frame, node.value))


def _named_expression(frame: Frame, node: ast.NamedExpr) -> Value:
    from devlint.flow.statements import bind

    value = evaluate(frame, node.value)
    bind(frame, node.target, value, node.value)
    return value


def _lambda(frame: Frame, node: ast.Lambda) -> Value:
    inner = Frame(frame.machine, frame.state.copy(), frame.info, frame.owner, frame.closure, frame.inlined, frame)
    for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
        inner.state.env[argument.arg] = Opaque(
            f"{frame.name}:{argument.arg}@{node.lineno}:{node.col_offset}", argument.arg
        )
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
            if isinstance(held, Opaque) and len(node.values) == 2 and _is_prefix(node.values[0]):
                # f"cuda:{rank}" is one device for one rank
                return DeviceValue(device.symbol(f"cuda:{held.key}", f"cuda:{{{held.text}}}"), node)
    return UNKNOWN


def _is_prefix(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value.rstrip(":") in device.ACCELERATOR_TYPES
    )


_EXPRESSIONS: dict[type[ast.expr], Callable[..., Value]] = {
    ast.Constant: _constant,
    ast.Name: _name,
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
    ast.NamedExpr: _named_expression,
    ast.Lambda: _lambda,
    ast.Await: _inner,
    ast.Starred: _inner,
    ast.YieldFrom: _inner,
    ast.Yield: _yield,
    ast.JoinedStr: _joined,
}
