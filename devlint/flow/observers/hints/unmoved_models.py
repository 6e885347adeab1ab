"""Networks that nobody moves, although what they are given was put on a device."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from devlint.flow.catalog.methods import MODES, MOVERS
from devlint.flow.catalog.schema import Row
from devlint.flow.core.call import Call
from devlint.flow.core.events import Observer
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.objects import Instance, Module
from devlint.flow.domain.values import Value
from devlint.flow.observers.hints.mixed_operands import is_put_there
from devlint.flow.observers.hints.unmoved_inputs import TOLD
from devlint.flow.syntax import names, nodes
from devlint.sites.base import Operand, Step
from devlint.sites.placement import Hint, HintKind

_LOADERS = frozenset({"from_pretrained"})
_RUNS = frozenset({"forward", "generate"})
_AS_THEY_ARE = MODES | {"requires_grad_", "float", "half"}
"""Methods of modules that return the module, where it is."""
_OF_NETWORKS = MODES | {"parameters", "named_parameters", "load_state_dict", "state_dict"}
"""Methods that show something to be a network: nothing else that is made so has them."""
_SAYS_WHERE = MOVERS | {"device", "device_map", "hf_device_map", "to_empty", "share_memory"}


class UnmovedModels(Observer):
    """Networks of other packages, which are on the CPU until somebody moves them."""

    def on_unfollowed_call(self, frame: Frame, call: Call, path: str, row: Row | None) -> None:
        """What a name stands for is called with what the function has put on a device."""
        if isinstance(call.node.func, ast.Name):
            _called(frame, call, call.node.func)

    def on_method(self, frame: Frame, call: Call, receiver: Value, node: ast.Attribute) -> None:
        """So is what an object keeps, or `forward` of either."""
        if node.attr in _RUNS:
            _called(frame, call, node.value)
        elif isinstance(receiver, Instance) and names.of_self(node) and receiver.cls.method(node.attr) is None:
            _called(frame, call, node)


def _called(frame: Frame, call: Call, node: ast.expr) -> None:
    interpreter, name = frame.interpreter, names.dotted(node)
    beside = next((given for given in call.given() if is_put_there(given[1])), None)
    if beside is None or frame.silent or interpreter.default_is_set or interpreter.index.runs("training"):
        return
    inside = _all_that_speaks_of(frame, node)
    made = _origin(frame, name, inside) if inside else None
    if inside and made is not None and _is_network(name, inside, made) and _stays(name, inside):
        steps = (Step(made, f"`{name}` is made here, on the CPU, and nowhere moved"),)
        frame.emit(
            Hint(
                call.node,
                scope_of(frame),
                HintKind.UNMOVED,
                Operand(node, name, story=steps),
                frame.operand(*beside),
            )
        )


def _all_that_speaks_of(frame: Frame, node: ast.expr) -> Sequence[ast.AST] | None:
    """The code in which a name, or an attribute of ``self``, stands for one thing; ``None`` if it is an argument."""
    info, owner = frame.info, frame.owner
    if isinstance(node, ast.Attribute):
        own = owner is not None and not owner.is_module and names.of_self(node) != ""
        return owner.nodes if owner is not None and own and not _is_known(frame, node) else None
    if not isinstance(node, ast.Name) or _is_known(frame, node):
        return None
    if info is not None and _is_given(info.nodes, node.id):
        return None
    if info is not None and _stores(info.own, node.id):
        return info.nodes
    everything = nodes.walk(frame.interpreter.tree)
    # nowhere does the name stand for something else
    elsewhere = sum(_stores(part.own, node.id) for part in frame.interpreter.index.functions.values())
    return None if elsewhere or _is_given(everything, node.id) else everything


def _is_known(frame: Frame, node: ast.expr) -> bool:
    """Whether the interpreter knows where it is."""
    with frame.interpreter.quiet():
        value = frame.evaluate(node)
    return isinstance(value, Module) and frame.place_of(value).known


def _is_given(inside: Iterable[ast.AST], name: str) -> bool:
    return any(isinstance(part, ast.arg) and part.arg == name for part in inside)


def _stores(inside: Iterable[ast.AST], name: str) -> int:
    spoken = (part for part in inside if isinstance(part, (ast.Name, ast.Attribute)))
    return sum(isinstance(part.ctx, ast.Store) and names.dotted(part) == name for part in spoken)


def _origin(frame: Frame, name: str, inside: Sequence[ast.AST]) -> ast.Call | None:
    """The one call that makes it, of a class or a checkpoint, of which nothing says where that puts it."""
    assigned = [part for part in inside if isinstance(part, ast.Assign) and name in map(names.dotted, part.targets)]
    values = [_bare(part.value) for part in assigned]
    made = [value for value in values if names.dotted(value) != name]
    if len(made) != 1 or len(assigned) != _stores(inside, name) or not isinstance(made[0], ast.Call):
        return None
    path = names.dotted(made[0].func)
    last = path.rpartition(".")[2]
    strange = path.partition(".")[0] in frame.interpreter.index.imports
    makes = last in _LOADERS or last[:1].isupper()
    said = any(word in ast.unparse(made[0]).lower() for word in TOLD)
    return made[0] if strange and makes and not said else None


def _bare(node: ast.expr) -> ast.expr:
    """What is switched to evaluation, and the like, at once."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _AS_THEY_ARE:
        node = node.func.value
    return node


def _is_network(name: str, inside: Iterable[ast.AST], made: ast.Call) -> bool:
    """Whether the code asks it for what only networks have."""
    calls = (part for part in inside if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute))
    asked = (part.func for part in calls if isinstance(part.func, ast.Attribute) and part.func.attr in _OF_NETWORKS)
    return any(names.dotted(part.value) == name or part.value is made for part in asked)


def _stays(name: str, inside: Iterable[ast.AST]) -> bool:
    """Whether it is only called, and asked for what says nothing of places: no other name and no call gets it."""
    parts = [*inside]
    spoken = {part for part in parts if isinstance(part, (ast.Name, ast.Attribute)) and names.dotted(part) == name}
    read = {part for part in spoken if isinstance(part.ctx, ast.Load)}
    for part in parts:
        if isinstance(part, ast.Call):
            read.discard(part.func)
        elif isinstance(part, ast.Attribute) and part.attr not in _SAYS_WHERE:
            read.discard(part.value)
    within = (part for part in parts if isinstance(part, ast.Attribute) and part.attr in _SAYS_WHERE)
    return not read and not any(spoken.intersection(nodes.walk(part.value)) for part in within)
