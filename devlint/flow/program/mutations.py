"""What the methods of a class do to ``self``: what they assign and move."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from devlint.flow.catalog.creation import FROM_VALUES, MAKING
from devlint.flow.catalog.methods import MOVERS, OF_MODULES, TO_DEVICE, TO_NUMBERS
from devlint.flow.program.def_use import DESCRIPTIONS
from devlint.flow.program.module_bases import is_module_path, is_plain
from devlint.flow.program.symbols import ClassInfo, FunctionInfo
from devlint.flow.program.type_hints import defaults_of, is_device_name
from devlint.flow.syntax import bindings, names, nodes
from devlint.flow.syntax.nodes import derived
from devlint.source.syntax import says_none

_FOR_GOOD = TO_DEVICE | {"to_empty"}


@derived
def changed(info: ClassInfo) -> dict[str, str]:
    """What methods other than ``__init__`` do to attributes: "assigned", "moved", or an item of it is ("filled")."""
    found: dict[str, str] = {}
    for method in info.methods.values():
        if method.name == "__init__":
            continue
        moved = set(nodes.moved_in_place(method.of(ast.Assign)))
        for written in method.of(ast.Subscript):
            item: ast.expr = written
            while isinstance(item, ast.Subscript):
                item = item.value
            if isinstance(written.ctx, ast.Store) and names.of_self(item):
                found.setdefault(names.of_self(item), "filled")
        for node in method.attributes:
            if not isinstance(node.ctx, ast.Load) and names.of_self(node):
                found[node.attr] = "moved" if node in moved and found.get(node.attr) != "assigned" else "assigned"
            elif node.attr in OF_MODULES and names.dotted(node.value).startswith("self."):
                found.setdefault(names.dotted(node.value).split(".")[1], "moved")
    return found


def is_moved(info: ClassInfo, attribute: str) -> bool:
    """Whether a method moves what an attribute holds, or a part of it."""
    return any(
        node.attr in OF_MODULES and f"{names.dotted(node.value)}.".startswith(f"self.{attribute}.")
        for method in info.methods.values()
        if not method.initialises
        for node in method.attributes
    )


def only_if_none(info: ClassInfo, attribute: str) -> bool:
    """Whether all methods but the constructor assign an attribute only under a test that it is ``None``."""
    for method in (method for method in info.methods.values() if method.name != "__init__"):
        asked = [node for node in method.nodes if isinstance(node, ast.If) and _asks_for_none(node.test, attribute)]
        inside = {part for node in asked for statement in node.body for part in nodes.walk(statement)}
        stored = (node for node in method.attributes if node.attr == attribute and not isinstance(node.ctx, ast.Load))
        if not inside.issuperset(stored):
            return False
    return True


def stays_alike(info: ClassInfo, attribute: str, made: ast.AST | None) -> bool:
    """Whether all methods but the constructor only write into the tensor that ``made`` makes, or make it once more.

    ``self.total += loss`` is done in place, and ``self.total = torch.zeros(3)`` begins anew.
    """
    again = ast.unparse(made) if made is not None and _makes_alike(info, made) else None
    for method in (method for method in info.methods.values() if method.name != "__init__"):
        known: set[ast.expr] = {node.target for node in method.nodes if isinstance(node, ast.AugAssign)}
        for node in method.of(ast.Assign) if again is not None else ():
            known.update(node.targets if ast.unparse(node.value) == again else ())
        stored = {node for node in method.attributes if node.attr == attribute and not isinstance(node.ctx, ast.Load)}
        if not stored <= known:
            return False
    return True


def _makes_alike(info: ClassInfo, node: ast.AST) -> bool:
    """Whether a call of torch makes a tensor on the default device whatever the names in it stand for."""
    if not isinstance(node, ast.Call) or any(keyword.arg in (None, "device") for keyword in node.keywords):
        return False
    path = info.index.resolve(names.called(node))
    # a copy of data is where the data is
    copied = path in FROM_VALUES and not all(isinstance(part, ast.Constant) for part in node.args)
    return path in MAKING and not copied


def _asks_for_none(test: ast.expr, attribute: str) -> bool:
    if not isinstance(test, ast.Compare) or names.of_self(test.left) != attribute:
        return False
    return isinstance(test.ops[0], ast.Is) and says_none(test.comparators[0])


@derived
def is_set_up_elsewhere(info: ClassInfo) -> bool:
    """Whether the methods ask for a device that the class gives to no object: then somebody else does, and more."""
    lineage = [*info.linearization()]
    used = [node for known in lineage for method in known.methods.values() for node in method.attributes]
    own = [node for node in used if names.of_self(node)]
    given = {node.attr for node in own if not isinstance(node.ctx, ast.Load)}
    given.update(name for known in lineage for statement in known.node.body for name in bindings.binds(statement))
    return any(is_device_name(node.attr) and node.attr not in given for node in own)


@derived
def places_itself(info: ClassInfo) -> bool:
    """Whether its construction may put a module, or a part of it, somewhere else than on the default device."""
    strange = any(not is_module_path(root, info.index.catalog) and not is_plain(root) for root in info.roots())
    return strange or any(places(known.methods.values()) for known in info.linearization())


def places(methods: Iterable[FunctionInfo]) -> bool:
    """Whether a method moves a part for good, or the constructor one, or makes it where nobody has to pass."""
    for method in methods:
        if any(names.dotted(target).startswith("self.") for target in nodes.moved_in_place(method.of(ast.Assign))):
            return True
        if not method.initialises:
            continue
        set_ = {name for name, default in defaults_of(method.node.args).items() if not says_none(default)}
        given = {parameter.arg for parameter in method.parameters} - set_
        if any(isinstance(node.func, ast.Attribute) and node.func.attr in _FOR_GOOD for node in method.calls):
            return True
        told = (keyword.value for keyword in method.of(ast.keyword) if keyword.arg == "device")
        # what the caller passes, or none, places nothing by itself
        if not all(says_none(value) or (isinstance(value, ast.Name) and value.id in given) for value in told):
            return True
    return False


@derived
def runs_given(info: ClassInfo) -> bool:
    """Whether the methods call what the constructor was given: a module of somebody else's, wherever that is."""
    lineage = [*info.linearization()]
    called = {
        names.of_self(call.func) for known in lineage for method in known.methods.values() for call in method.calls
    }
    kept: set[str] = set()
    for constructor in filter(None, (known.methods.get("__init__") for known in lineage)):
        given = {parameter.arg for parameter in constructor.parameters}
        for statement in constructor.of(ast.Assign):
            if isinstance(statement.value, ast.Name) and statement.value.id in given:
                kept.update(map(names.of_self, statement.targets))
    return not (kept - {""}).isdisjoint(called)


@derived
def moves_inputs(info: ClassInfo) -> bool:
    """Whether ``forward`` places what it is given, or may do so: it moves more than tensors made by itself."""
    forward = info.method("forward")
    if forward is None:
        return True
    moved = [node.value for node in forward.attributes if node.attr in MOVERS]
    return not all(_is_made(node) or _is_made(_kept(info, node)) for node in moved)


def _kept(info: ClassInfo, node: ast.expr) -> ast.expr | None:
    """What the constructor has put into an attribute of ``self`` that no other method assigns."""
    name = names.of_self(node)
    constructor = info.methods.get("__init__")
    if constructor is None or not name or name in info.stored:
        return None
    made = (part.value for part in constructor.of(ast.Assign) if [*map(names.of_self, part.targets)] == [name])
    return next(made, None)


def _is_made(node: ast.expr | None) -> bool:
    """Whether a call of torch makes a tensor of nothing."""
    return node is not None and names.called(node) in MAKING


def takes_along(info: ClassInfo, attribute: str) -> bool:
    """Whether a class has a move of its own that assigns an attribute, or any, by names that are not in the text."""
    own = (info.method(name) for name in (*OF_MODULES, "_apply"))
    return any(_assigns(node, attribute) for method in own if method is not None for node in method.own)


def own_move(info: ClassInfo) -> FunctionInfo | None:
    """A move of the class's own that does not call that of the bases, and so leaves what is registered where it is."""
    own = (info.method(name) for name in (*OF_MODULES, "_apply"))
    return next((method for method in own if method is not None and _ends_here(method)), None)


def _ends_here(method: FunctionInfo) -> bool:
    """Whether a move calls neither that of the bases nor another one of the same object, which does."""
    moves = OF_MODULES | {"_apply"}
    own = {names.method(call) for call in method.calls if names.called(call).rpartition(".")[0] == "self"}
    # `nn.Module.to(self, device)`
    of_bases = any(
        names.method(call) in moves and call.args and names.is_name(call.args[0], "self") for call in method.calls
    )
    return moves.isdisjoint({*own, *map(names.of_super, method.nodes)}) and not of_bases


def fetched(info: ClassInfo, attribute: str) -> ast.Call | None:
    """Where a method of a class, but for the constructor, makes a number of what an attribute holds."""
    calls = (call for method in info.methods.values() if method.name != "__init__" for call in method.calls)
    return next((call for call in calls if _of_attribute(call, attribute)), None)


def _of_attribute(call: ast.Call, attribute: str) -> bool:
    if names.called(call) in ("int", "float", "bool") and len(call.args) == 1:
        node: ast.AST = call.args[0]
    elif names.method(call) in TO_NUMBERS and isinstance(call.func, ast.Attribute):
        node = call.func.value
    else:
        return False
    while not names.of_self(node):
        if isinstance(node, ast.Call) and names.method(node) not in MOVERS | DESCRIPTIONS:
            node = node.func
        elif isinstance(node, (ast.Attribute, ast.Subscript)) and getattr(node, "attr", "") not in DESCRIPTIONS:
            node = node.value
        else:
            return False
    return names.of_self(node) == attribute


def _assigns(node: ast.AST, attribute: str) -> bool:
    if isinstance(node, ast.Attribute) and node.attr == attribute:
        return isinstance(node.ctx, ast.Store)
    if isinstance(node, ast.Subscript):
        return isinstance(node.ctx, ast.Store) and names.dotted(node.value).endswith("__dict__")
    return names.called(node) in ("setattr", "self.__setattr__")
