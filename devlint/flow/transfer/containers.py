"""Lists and dicts: what is in them now, under whatever name, and what their methods do."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TypeVar

from devlint.device import ITEMS
from devlint.flow.core import events
from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.domain.heap import CONTENT
from devlint.flow.domain.join import add_item
from devlint.flow.domain.objects import is_host
from devlint.flow.domain.tensors import Batches, Tensor
from devlint.flow.domain.values import UNKNOWN, Const, Mapping, Sequence, Value, is_number
from devlint.flow.program.identity import identity
from devlint.immutable import replace

_REORDERING = frozenset({"reverse", "sort", "pop", "remove", "clear"})
_SEQUENCE_GROWERS = frozenset({"append", "add", "insert", "extend"})
FILLING = _SEQUENCE_GROWERS | {"update", "setdefault", "__setitem__"}
"""Methods that put into a container what they are given."""
_DICT_CHANGES = frozenset({"setdefault", "pop", "popitem", "clear"})
_LONGEST_LIST = 64
"""Beyond so many items, a list that is filled is known by what any one of them is."""
Made = TypeVar("Made", bound=Value)


def made(frame: Frame, value: Made) -> Made:
    """A new list or dict: an object of its own, whatever names it will have."""
    if not isinstance(value, Mapping) and not (isinstance(value, Sequence) and value.mutable):
        return value
    found = replace(value, oid=identity())
    CONTENT.put(frame.state.heap, found.oid, found)
    return found


def change(frame: Frame, container: Sequence | Mapping, node: ast.expr, content: Value) -> None:
    """What a container holds from now on; ``node`` is what the code calls it."""
    if container.oid:
        if isinstance(content, (Sequence, Mapping)):
            content = replace(content, oid=container.oid)
        CONTENT.put(frame.state.heap, container.oid, content)
    elif isinstance(node, ast.Name):
        # one of several containers, which may have other names as well
        shared = [name for name, held in frame.state.env.items() if held is container]
        frame.state.env.update(dict.fromkeys((node.id, *shared), content))


def put_into(frame: Frame, batch: Value, node: ast.expr, value: Value) -> None:
    """Something is put into ``node``: if that is a batch, or a part of one, tensors in it may be elsewhere now."""
    if not isinstance(batch, Batches):
        return
    stays = isinstance(value, (Tensor, Batches)) and value.device.same(batch.device) is True
    if stays or is_host(value) or is_number(value):
        return
    frame.state.moves(batch)
    if not batch.loaders and isinstance(node, ast.Name):
        # it comes from no loader, so that nothing tells it from another one
        frame.state.env[node.id] = UNKNOWN


def method(frame: Frame, call: Call, receiver: Sequence | Mapping, node: ast.Attribute) -> Value:
    """The result of a method of a container, which may change it."""
    if isinstance(receiver, Mapping):
        return _of_dict(frame, call, receiver, node)
    name = node.attr
    if name in _SEQUENCE_GROWERS and isinstance(node.value, ast.Attribute) and call.positional:
        for observer in events.heard(frame, "on_put"):
            observer.on_put(frame, node.value, call.positional[-1], call.nodes[-1])
    if name in _SEQUENCE_GROWERS and call.positional:
        change(frame, receiver, node.value, _grown(frame.state.filled(receiver), call, name))
        return Const(None)
    if name in _REORDERING:
        turned = receiver.items[::-1] if name == "reverse" and receiver.items is not None else None
        change(frame, receiver, node.value, replace(receiver, items=turned, head=()))
    if name == "pop":
        return receiver.item
    if name == "copy":
        return made(frame, receiver)
    return UNKNOWN


def _grown(receiver: Sequence, call: Call, name: str) -> Sequence:
    """The list after something was put into it."""
    added = call.positional[-1]
    several = added if name == "extend" and isinstance(added, Sequence) else None
    if name == "extend":
        added = several.item if several is not None else UNKNOWN
    grown = added if receiver.items == () else add_item(receiver.item, added)
    more = (several.items if several is not None else None) if name == "extend" else (added,)
    first = call.positional[0]
    front = name == "insert" and isinstance(first, Const) and first.value == 0
    items = None
    if receiver.items is not None and more is not None and len(receiver.items) + len(more) <= _LONGEST_LIST:
        if name in ("append", "extend"):
            items = (*receiver.items, *more)
        elif front:
            items = (added, *receiver.items)
    head = (added, *receiver.first()) if front else receiver.first() if name in ("append", "extend") else ()
    return Sequence(items, shown(head) if grown is UNKNOWN else grown, True, head=head)


def shown(head: tuple[Value, ...]) -> Value:
    """What is known of any one item where only the first ones are: that there are several kinds."""
    known = common(head)
    return known if isinstance(known, Tensor) and known.device.guard is ITEMS else UNKNOWN


def _of_dict(frame: Frame, call: Call, receiver: Mapping, node: ast.Attribute) -> Value:
    name = node.attr
    if name in ("items", "values"):
        held = any_of(receiver)
        return Sequence(None, held if name == "values" else Sequence((UNKNOWN, held), held))
    if name == "get" and call.positional and isinstance(call.positional[0], Const):
        key = call.positional[0].value
        return next((value for known, value in receiver.items if known == key), UNKNOWN)
    if name == "update":
        change(frame, receiver, node.value, _updated(receiver, call))
    elif name in _DICT_CHANGES:
        change(frame, receiver, node.value, UNKNOWN)
    elif name == "copy":
        return made(frame, receiver)
    return UNKNOWN


def _updated(receiver: Mapping, call: Call) -> Value:
    """The dict with the entries of another one."""
    given = call.positional[0] if call.positional else Mapping(())
    if not isinstance(given, Mapping) or given.other is not UNKNOWN or call.open or call.starred:
        return UNKNOWN
    entries: dict[object, Value] = dict(receiver.items)
    entries.update(given.items)
    entries.update(call.keywords.items())
    return Mapping(tuple(entries.items()), receiver.other)


def any_of(mapping: Mapping) -> Value:
    """What any one value of a dict is."""
    values = [value for _, value in mapping.items]
    if mapping.other is not UNKNOWN:
        return UNKNOWN if values else mapping.other
    return common(values)


def common(values: Iterable[Value]) -> Value:
    """What any one of several values is."""
    result: Value | None = None
    for value in values:
        result = value if result is None else add_item(result, value)
        if result is UNKNOWN:
            break
    return UNKNOWN if result is None else result


def spread(keywords: dict[str, Value], value: Value) -> bool:
    """Put the entries of ``**value`` among the keywords, where they are all known."""
    if not isinstance(value, Mapping) or value.other is not UNKNOWN:
        return False
    keywords.update({key: held for key, held in value.items if isinstance(key, str)})
    return True
