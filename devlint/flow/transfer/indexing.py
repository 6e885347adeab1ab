"""Indexing: reading and writing parts of tensors and containers."""

from __future__ import annotations

import ast
import functools

from devlint import device
from devlint.device import AN_ITEM, ITEMS, Role
from devlint.flow.catalog.concepts import ARRAY
from devlint.flow.catalog.creation import DATA, LEGACY, SIZED
from devlint.flow.core import events
from devlint.flow.core.interpreter import Frame
from devlint.flow.domain.heap import DEVICE
from devlint.flow.domain.heap import item as item_name
from devlint.flow.domain.join import add_item, is_lost, join
from devlint.flow.domain.objects import Module, Stateful
from devlint.flow.domain.tensors import Batches, Loader, Tensor, as_tensor, surely_tensor
from devlint.flow.domain.values import UNKNOWN, Const, Mapping, Opaque, Sequence, Unknown, Value
from devlint.flow.syntax import names
from devlint.flow.transfer import containers, havoc
from devlint.flow.transfer.placement import in_graph, is_tensor, meet, stranded, surely_away
from devlint.immutable import replace
from devlint.sites.placement import OperationKind

ROUND = "[]"
"""What the key of an argument's item ends with, where a loop goes through the argument."""


def item(tensor: Tensor) -> Tensor:
    """One element along the first dimension."""
    rank = None if tensor.rank is None else tensor.rank - 1
    many = None if rank is None else rank > 0
    return replace(tensor, rank=rank, many=many, certain=True, grad=in_graph(tensor), element=rank is None)


def member(container: Module) -> Value:
    """One of a container's modules: it is where the container is."""
    if not container.item and container.item_cls is None:
        return UNKNOWN
    return replace(container, path=container.item, item="", cls=container.item_cls, item_cls=None, spread=False)


def subscript(frame: Frame, node: ast.Subscript, base: Value) -> Value:
    """The value of ``base[index]``."""
    if isinstance(base, (Sequence, Mapping)):
        return _element(frame, node, base)
    if isinstance(base, Batches):
        if base.certain and (isinstance(node.slice, ast.Tuple) or surely_tensor(frame.evaluate(node.slice))):
            return _tensor_item(frame, node, as_tensor(base))
        position = frame.evaluate(node.slice)
        at = position.value if isinstance(position, Const) else None
        if isinstance(at, int) and at >= 0:
            return base.at(at)
        return replace(base.under(at if isinstance(at, str) else None), part=True, parts=())
    if isinstance(base, (Tensor, Opaque)) and surely_tensor(base):
        if isinstance(node.slice, ast.Constant) and node.slice.value == 0 and _is_number(frame, node.value, base):
            # `loss.data[0]`: a number until torch 0.4, and an error since
            return UNKNOWN
        return _tensor_item(frame, node, as_tensor(base))
    index = frame.evaluate(node.slice)
    if isinstance(base, Stateful) and base.path == ARRAY:
        return array_item(base)
    if isinstance(base, Opaque):
        key = index.value if isinstance(index, Const) else None
        held = frame.state.heap.get((base.key, item_name(key))) if isinstance(key, (str, int)) else None
        if isinstance(held, Value):
            return held
        where = repr(key) if key is not None else f"{node.lineno}:{node.col_offset}"
        if base.role is Role.INPUT:
            # by its name, a part of a batch: from the host, as long as nobody moves it
            hint = "host" if isinstance(key, str) and base.key.endswith(ROUND) else _item_hint(base)
            return replace(base, key=f"{base.key}[{where}]", text=frame.interpreter.text(node), hint=hint)
        return part(base, where)
    return member(base) if isinstance(base, Module) and not isinstance(node.slice, ast.Slice) else UNKNOWN


def array_item(array: Stateful) -> Opaque:
    """A number of an array, or a smaller array."""
    return Opaque(f"{array.path}{ROUND}", AN_ITEM + array.path, "host")


def part(base: Opaque, where: object) -> Value:
    """A part of what a network returned, or of a prepared batch: it is probably there, too."""
    if not base.near.known and base.managed is None:
        return UNKNOWN
    managed = base.managed and replace(base.managed, part=True)
    return replace(base, key=f"{base.key}[{where}]", text=f"{base.text}[{where}]", hint="", managed=managed)


def _item_hint(base: Opaque) -> str:
    return base.hint if base.hint in ("number", "host") else "tensor" if base.hint == "tensors" else ""


def _element(frame: Frame, node: ast.Subscript, base: Sequence | Mapping) -> Value:
    index = frame.evaluate(node.slice)
    if isinstance(base, Mapping):
        if isinstance(index, Const):
            return next((value for key, value in reversed(base.items) if key == index.value), _any_item(base.other))
        return _any_item(base.other) if not base.items else _one_of(frame, node.slice, base)
    if isinstance(node.slice, ast.Slice):
        return replace(base, items=None, oid=0, head=())
    if isinstance(index, Const) and isinstance(index.value, int) and base.items is not None:
        return base.items[index.value] if -len(base.items) <= index.value < len(base.items) else UNKNOWN
    if isinstance(index, Const) and isinstance(index.value, int) and 0 <= index.value < len(base.head):
        return base.head[index.value]
    return _any_item(base.item)


def _any_item(item: Value) -> Value:
    """Any one item of a container: where it holds several kinds, which of them that is cannot be told."""
    if isinstance(item, Tensor) and item.device.guard is ITEMS:
        return item.placed(device.UNKNOWN)
    return item


def _one_of(frame: Frame, index: ast.expr, base: Mapping) -> Value:
    """The value of a key that is not known: one of the loaders, where a dict holds nothing else."""
    known = keys(frame, index)
    held = [value for key, value in base.items if known is None or key in known]
    if not held or base.other is not UNKNOWN or not all(isinstance(value, Loader) for value in held):
        return UNKNOWN
    return functools.reduce(lambda one, other: join(one, other, ITEMS), held)


def keys(frame: Frame, index: ast.expr) -> list[object] | None:
    """What a name stands for which a loop takes from a list of literals, ``None`` where it is anything else."""
    for loop in reversed(frame.loops):
        node = loop.node
        if isinstance(node, ast.For) and isinstance(index, ast.Name) and names.dotted(node.target) == index.id:
            listed = node.iter.elts if isinstance(node.iter, (ast.List, ast.Tuple)) else []
            return [item.value for item in listed if isinstance(item, ast.Constant)] or None
    return None


def _is_number(frame: Frame, node: ast.expr, value: Value) -> bool:
    """Whether a tensor surely has no dimensions, as what goes backward has: ``loss.data`` of ``loss.backward()``."""
    if as_tensor(value).many is not None:
        return as_tensor(value).many is False
    loss = names.dotted(node.value) if isinstance(node, ast.Attribute) and node.attr == "data" else ""
    return bool(loss) and f"{loss}.backward()" in frame.interpreter.text_of_file


def _tensor_item(frame: Frame, node: ast.Subscript, tensor: Tensor) -> Tensor:
    tensor = replace(tensor, grad=in_graph(tensor))
    parts = _parts(node.slice)
    indexes: list[tuple[ast.expr, Value]] = []
    dropped = 0
    unknown = False
    for part in parts:
        value = frame.evaluate(part)
        if isinstance(part, ast.Slice) or (isinstance(value, Const) and value.value in (None, Ellipsis)):
            continue
        if _is_index(value):
            indexes.append((part, value))
        elif isinstance(value, Const) or (isinstance(value, Opaque) and value.hint == "number"):
            dropped += 1
        else:
            # a number or a tensor: nothing is known of the dimensions that are left
            unknown = True
    for observer in events.heard(frame, "on_index"):
        observer.on_index(frame, node, tensor, indexes)
    for part, index in indexes:
        # a CPU index may select from any device, an accelerator's index only from its own
        met = ((node.value, tensor, ""), (part, index, ""))
        if _may_clash(frame, node.value, tensor, index) and meet(frame, node, "[]", OperationKind.INDEX, met):
            tensor = stranded(tensor)
    # whatever stands beside a slice, its own dimension is left
    sliced = any(isinstance(part, ast.Slice) for part in parts)
    if unknown:
        return replace(tensor, rank=None, many=sliced or None, certain=True, element=not (indexes or sliced))
    rank = None if tensor.rank is None else tensor.rank - dropped
    if indexes:
        plain = len(indexes) == 1 and as_tensor(indexes[0][1]).rank == 1
        left = tensor.rank - dropped if plain and tensor.rank is not None else None
        return replace(tensor, rank=left, many=True if dropped == 0 or (left or 0) > 0 else None, certain=True)
    many = True if sliced else tensor.many if dropped == 0 else None if rank is None else rank > 0
    element = not sliced and (tensor.element or (dropped > 0 and rank is None))
    rank = rank if dropped or len(parts) else tensor.rank
    return replace(tensor, rank=rank, many=many, certain=True, element=element)


def _is_index(value: Value) -> bool:
    """Whether an index is a tensor, of a batch perhaps: one without dimensions is read as the number that it is."""
    if isinstance(value, Tensor) and (value.many is False or (value.many is None and value.element)):
        return False
    return surely_tensor(value) or (isinstance(value, Batches) and value.certain and value.part)


def _may_clash(frame: Frame, node: ast.expr, indexed: Tensor, index: Value) -> bool:
    """Whether an index may be on an accelerator where the indexed tensor, ``node``, is not."""
    place = frame.settled(indexed.device)
    if place.accelerates() is False:
        return True
    on_cpu = any(leaf.kind is device.Kind.CPU for leaf in place.leaves())
    there = frame.settled(as_tensor(index).device)
    # an argument in whose place something is made on one path; other results may well have been begun on the CPU
    others = [leaf for leaf in place.leaves() if leaf.kind is not device.Kind.CPU]
    stands_in = all(leaf.role is Role.INPUT and leaf.text == names.dotted(node) for leaf in others)
    return on_cpu and (there.accelerates() is True or (stands_in and surely_away(there)))


def _parts(index: ast.expr) -> list[ast.expr]:
    return list(index.elts) if isinstance(index, ast.Tuple) else [index]


def _write(
    frame: Frame,
    target: ast.Subscript,
    base: Tensor,
    indexes: list[tuple[ast.expr, Value]],
    value: Value,
    node: ast.AST,
    combined: bool,
) -> None:
    by_tensor = [(part, index) for part, index in indexes if _is_index(index)]
    for observer in events.heard(frame, "on_index"):
        observer.on_index(frame, target, base, by_tensor)
    for part, index in by_tensor:
        # torch copies an index to what it writes into, and refuses it only where it reads, which `x[i] += y` does first
        refused = combined and _may_clash(frame, target.value, base, index)
        kind = OperationKind.INDEX if refused else OperationKind.INDEXED
        meet(frame, target, "[] op=" if combined else "[] =", kind, ((target.value, base, ""), (part, index, "")))
    if not is_tensor(value):
        return
    if in_graph(as_tensor(value)) and isinstance(target.value, ast.Name) and target.value.id in frame.state.env:
        # what is written into it is part of it from now on
        frame.state.env[target.value.id] = replace(base, grad=base.grad or "graph")
    selected = any((isinstance(index, Sequence) and index.mutable) or _is_mask(part) for part, index in indexes)
    kind = (
        OperationKind.OPERANDS
        if combined
        else OperationKind.ASSIGNMENT
        if by_tensor or selected
        else OperationKind.ACCUMULATOR
    )
    if kind is OperationKind.ASSIGNMENT and (as_tensor(value).many is not True or _makes_one(value)):
        # torch copies what has no dimensions, or makes a number of what has one element
        return
    if kind is not OperationKind.ACCUMULATOR or base.origin.factory:
        meet(frame, target, "[] op=" if combined else "[] =", kind, ((target.value, base, ""), (node, value, "")))


def _is_mask(index: ast.expr) -> bool:
    """Whether an index compares, item by item: of one number, it would select nothing that a number does not."""
    if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.Invert):
        return _is_mask(index.operand)
    if isinstance(index, ast.BinOp) and isinstance(index.op, (ast.BitAnd, ast.BitOr)):
        return _is_mask(index.left) or _is_mask(index.right)
    return isinstance(index, ast.Compare)


def _makes_one(value: Value) -> bool:
    """Whether a tensor was made of one value, or with dimensions of size one."""
    made = value.origin.node if isinstance(value, Tensor) else None
    if not isinstance(value, Tensor) or not isinstance(made, ast.Call) or not made.args:
        return False
    name = value.origin.factory.rpartition(".")[2]
    first = made.args[0]
    if name in DATA or name in LEGACY:
        return isinstance(first, (ast.List, ast.Tuple)) and len(first.elts) == 1
    sizes = first.elts if isinstance(first, (ast.List, ast.Tuple)) else made.args
    return name in SIZED and all(isinstance(size, ast.Constant) and size.value == 1 for size in sizes)


def _replaced(frame: Frame, listed: Sequence, index: Value, value: Value) -> Sequence:
    """A list with another item in one place."""
    if is_lost(value):
        return listed
    at = index.value if isinstance(index, Const) else None
    if listed.items is None or not isinstance(at, int) or not -len(listed.items) <= at < len(listed.items):
        known = isinstance(at, int) and 0 <= at < len(listed.head)
        head = (*listed.head[:at], value, *listed.head[at + 1 :]) if known and isinstance(at, int) else ()
        # perhaps the items that were elsewhere are gone: the last one is, or each round exchanges another
        loop = frame.loops[-1] if frame.loops else None
        every = isinstance(at, int) or (loop is not None and not loop.skips and frame.branches <= loop.branches)
        apart = every and isinstance(listed.item, Tensor) and as_tensor(value).device != listed.item.device
        return Sequence(None, containers.shown(head) if apart else add_item(listed.item, value), True, head=head)
    items = list(listed.items)
    items[at] = value
    return Sequence(tuple(items), containers.common(items), True)


def _filled(mapping: Mapping, value: Value) -> Value:
    """A dict with one more entry, under a key that is not known: it may be that of any entry which was there."""
    if mapping.items:
        return Mapping(tuple((key, _kept(old, value)) for key, old in mapping.items))
    if isinstance(value, Unknown):
        return UNKNOWN
    return Mapping((), value if mapping.other is UNKNOWN else add_item(mapping.other, value))


def _kept(old: Value, new: Value) -> Value:
    """What an entry is that may have been replaced: known if it is in the same place as before, or no tensor came."""
    if isinstance(old, Tensor) and isinstance(new, Tensor):
        return old if old.device == new.device else UNKNOWN
    return old if isinstance(new, Const) else UNKNOWN


def assign_item(frame: Frame, target: ast.Subscript, value: Value, node: ast.AST, combined: bool = False) -> None:
    """``base[index] = value``: slices and integers copy across devices, tensor indexes do not."""
    base = frame.evaluate(target.value)
    if isinstance(base, Batches) and base.certain and base.part:
        base = as_tensor(base)
    if isinstance(base, (Tensor, Opaque)) and surely_tensor(base):
        indexes = [frame.evaluate(part) for part in _parts(target.slice)]
        _write(
            frame, target, as_tensor(base), list(zip(_parts(target.slice), indexes, strict=True)), value, node, combined
        )
        return
    index = frame.evaluate(target.slice)
    for observer in events.heard(frame, "on_item"):
        observer.on_item(frame, target, base, index, value)
    if isinstance(base, Mapping):
        key = index.value if isinstance(index, Const) else None
        if key is not None:
            entries = {**dict(base.items), key: value}
            containers.change(frame, base, target.value, Mapping(tuple(entries.items()), base.other))
        else:
            containers.change(frame, base, target.value, _filled(base, value))
    elif isinstance(base, Sequence):
        containers.change(frame, base, target.value, _replaced(frame, frame.state.filled(base), index, value))
    elif isinstance(base, Module) and frame.place_of(base).accelerates() is not False:
        # a part is exchanged: where the whole is cannot be told any more
        DEVICE.put(frame.state.heap, base.oid, device.UNKNOWN)
    elif isinstance(base, Opaque) and isinstance(index, Const) and isinstance(index.value, (str, int)):
        frame.state.heap[(base.key, item_name(index.value))] = value
    else:
        # batch[key] = batch[key].to(device): some of the batch, or all of it, has moved
        containers.put_into(frame, base, target.value, value)
    if isinstance(value, Module) and isinstance(base, (Opaque, Unknown)):
        havoc.exchange(frame, target.value, base, value)
