"""Modules kept in plain lists, tuples and dicts of a module, which does not know of them."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator

from devlint.device import IMPLIED_CPU
from devlint.flow.catalog import torch_table
from devlint.flow.catalog.concepts import MODULE
from devlint.flow.core.events import Observer
from devlint.flow.core.interpreter import Frame, Interpreter
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.heap import CHILDREN, attributes
from devlint.flow.domain.objects import Module
from devlint.flow.domain.state import State
from devlint.flow.domain.values import Mapping, Opaque, Sequence, Value
from devlint.flow.program.module_classes import has_state, is_empty
from devlint.flow.program.symbols import ClassInfo, FunctionInfo
from devlint.flow.syntax import names, nodes
from devlint.immutable import immutable, replace
from devlint.sites.base import Operand, Scope
from devlint.sites.placement import Attribute

_OWN_WAYS = frozenset(
    """parameters named_parameters children named_children modules named_modules state_dict _apply to cuda
    __setattr__""".split()
)
"""Methods with which a class can take care of modules that it has not registered."""
_REGISTERS = frozenset({"add_module", "register_module", "ParameterList", "setattr", "__setattr__"})
_LOOKS = frozenset("len range enumerate zip reversed print isinstance id list tuple iter".split())
"""Functions that register nothing that they are given."""
_ALIKE = frozenset({"list", "tuple", "dict", "reversed", "iter"})
"""Of these, functions that give the items on."""
_VIEWS = frozenset({"values", "items", "copy"})
_DEEPEST = 4
_OF_MODULES = re.compile(
    r"(?:typing\.)?(?:Optional\[)?(?:typing\.|abc\.)?(?P<container>[Ll]ist|[Tt]uple|[Dd]ict|Sequence|Iterable|Mapping)"
    r"\[(?:str, )?(?P<item>[\w.]+)(?:, \.\.\.)?\]+(?: \| None)?"
)
"""An annotation of a parameter that takes several modules."""


@immutable(frozen=True, slots=True)
class _Kept:
    owner: str
    name: str
    node: ast.expr
    scope: Scope
    container: str
    modules: frozenset[int]
    refused: bool = False


class UnregisteredModules(Observer):
    """The plain containers of a file's modules that hold modules; nobody asks for those of other files."""

    wants_inlined = True
    wants_quiet = True

    def __init__(self, interpreter: Interpreter) -> None:
        self._known: dict[tuple[str, str], _Kept] = {}
        self._empty: dict[tuple[str, str], _Kept] = {}

    def on_store(self, frame: Frame, target: ast.Attribute, base: Value, value: Value, node: ast.AST) -> None:
        """``__init__`` keeps a container, or what it was given, under a name."""
        if not isinstance(base, Module) or base.text != "self" or not isinstance(node, ast.expr):
            return
        if frame.info is not None and frame.owner is not None and frame.info.name == "__init__":
            if isinstance(value, (Sequence, Mapping)):
                held = frame.state.heap.get((base.oid, target.attr))
                self._declare(frame, frame.owner, target.attr, value, node, isinstance(held, Module))
            else:
                self._given(frame, frame.owner, frame.info, target.attr, node)

    def _declare(
        self, frame: Frame, owner: ClassInfo, name: str, value: Sequence | Mapping, node: ast.expr, refused: bool
    ) -> None:
        key = owner.name, name
        found = frozenset(_modules(value))
        kept = _Kept(*key, node, scope_of(frame), _container(value, node), found, refused)
        if found:
            self._known.setdefault(key, kept)
        elif (isinstance(node, ast.List) and not node.elts) or (isinstance(node, ast.Dict) and not node.keys):
            self._empty.setdefault(key, kept)

    def _given(self, frame: Frame, owner: ClassInfo, info: FunctionInfo, name: str, node: ast.expr) -> None:
        """Something that was given is a container if the parameter is annotated as one."""
        for part in _taken(node):
            taken = frame.state.env.get(part.id)
            parameter = taken.node if isinstance(taken, Opaque) else None
            container = _annotated(info, parameter) if isinstance(parameter, ast.arg) else ""
            if container and not (_shared(info, part) or _tested(info, part.id)):
                key = owner.name, name
                self._known.setdefault(key, _Kept(*key, node, scope_of(frame), container, frozenset()))

    def on_put(self, frame: Frame, target: ast.expr, value: Value, node: ast.AST | None) -> None:
        """``__init__`` puts something into a list, or into a dict, of ``self``."""
        name = names.dotted(target)
        if frame.info is None or frame.owner is None or frame.info.name != "__init__" or not name.startswith("self."):
            return
        key = frame.owner.name, name.removeprefix("self.")
        kept = self._known.get(key) or self._empty.get(key)
        found = frozenset(_modules(value))
        if kept is None or not found or (isinstance(node, ast.Name) and _shared(frame.info, node)) or _is_own(node):
            return
        # on another path, a container that registers them may be there instead
        if not isinstance(frame.evaluate(target), Module):
            self._known[key] = replace(kept, modules=kept.modules | found)

    def settle(self, info: ClassInfo, self_oid: int, state: State) -> None:
        """``__init__`` of a class is over: what is registered in some other way is nobody's concern."""
        mine = [(key, kept) for key, kept in self._known.items() if key[0] == info.name]
        if not mine:
            return
        held = {name: value for name, value in attributes(state.heap, self_oid) if isinstance(value, Module)}
        registered = set(_below(list(held.values()), state))
        cared_for = _cares(info)
        constructor = info.method("__init__")
        passed_on = frozenset[str]() if constructor is None else _passed_on(constructor) | _deleted(constructor)
        for key, kept in mine:
            handed_on = kept.name in _handed_on(info.index.tree) or kept.name in passed_on
            # a list in whose place every path has put a module by now
            replaced = kept.name in held
            if cared_for or kept.modules & registered or handed_on or replaced:
                del self._known[key]

    def of(self, info: ClassInfo) -> frozenset[int]:
        """The modules that a class, or one that it inherits from, keeps in such containers."""
        owners = {known.name for known in info.linearization()} if self._known else set()
        return frozenset(oid for kept in self._known.values() if kept.owner in owners for oid in kept.modules)

    def sites(self) -> Iterator[Attribute]:
        """A site for each container whose modules nobody registers."""
        for kept in self._known.values():
            value = Operand(kept.node, f"self.{kept.name}", IMPLIED_CPU)
            about = (kept.node, kept.scope, kept.owner, kept.name, value, ())
            yield Attribute(*about, kind="module", container=kept.container, refused=kept.refused)


def _is_own(node: ast.AST | None) -> bool:
    """Whether an expression is an attribute of ``self``, or a part of one: where modules are registered."""
    inside = node
    while isinstance(inside, (ast.Attribute, ast.Subscript)):
        inside = inside.value
    return inside is not node and isinstance(inside, ast.Name) and inside.id == "self"


def _taken(node: ast.AST) -> Iterator[ast.Name]:
    """The names of what an expression may give as it is, or in another list."""
    if isinstance(node, ast.Name):
        yield node
    elif isinstance(node, ast.IfExp):
        yield from (*_taken(node.body), *_taken(node.orelse))
    elif isinstance(node, ast.BoolOp):
        yield from (name for part in node.values for name in _taken(part))
    elif isinstance(node, ast.Call) and names.dotted(node.func) in ("list", "tuple", "dict") and len(node.args) == 1:
        yield from _taken(node.args[0])


def _tested(info: FunctionInfo, name: str) -> bool:
    """Whether a function asks for the type of what is under a name, which may be a container that registers."""
    tests = (call for call in info.calls if names.dotted(call.func) == "isinstance" and call.args)
    return any(names.dotted(call.args[0]) == name for call in tests)


def _annotated(info: FunctionInfo, parameter: ast.arg) -> str:
    """The container of modules with parameters that a parameter is annotated as; empty where it is none."""
    text = names.code(parameter.annotation).strip("'\"") if parameter.annotation is not None else ""
    found = _OF_MODULES.fullmatch(text)
    if found is None:
        return ""
    path = info.index.resolve(found["item"])
    known, own = torch_table.module(path), info.index.classes.get(path)
    layers = path == MODULE or (known is not None and known.has_params)
    if not layers and (own is None or not own.is_module or has_state(own) is False or is_empty(own)):
        return ""
    name = found["container"].lower()
    return "dict" if name in ("dict", "mapping") else name if name in ("list", "tuple") else "container"


def _container(value: Value, node: ast.expr) -> str:
    if isinstance(value, Mapping):
        return "dict"
    if isinstance(node, ast.Tuple):
        return "tuple"
    return "list" if isinstance(node, (ast.List, ast.ListComp)) else "container"


def _modules(value: Value, depth: int = 0) -> Iterator[int]:
    """The identities of the modules with parameters in a container, but for the one that keeps it."""
    if isinstance(value, Module):
        if value.text == "self":
            return
        if value.has_state and (value.cls is None or not (has_state(value.cls) is False or is_empty(value.cls))):
            yield value.oid
    elif depth < _DEEPEST and isinstance(value, Sequence):
        for item in value.items if value.items is not None else (value.item,):
            yield from _modules(item, depth + 1)
    elif depth < _DEEPEST and isinstance(value, Mapping):
        for item in (*(held for _, held in value.items), value.other):
            yield from _modules(item, depth + 1)


def _shared(info: FunctionInfo, name: ast.Name) -> bool:
    """Whether a function gives what is under a name to somebody else, too, who may register it."""
    for node in info.nodes:
        given: list[ast.expr] = []
        if isinstance(node, ast.Call):
            looks = names.dotted(node.func) in _LOOKS
            given = [] if looks else nodes.given(node)
            given = [part.value if isinstance(part, ast.Starred) else part for part in given]
        elif isinstance(node, ast.Assign):
            given = [node.value]
        elif isinstance(node, (ast.List, ast.Tuple)) and isinstance(node.ctx, ast.Load):
            given = node.elts
        if any(part.id == name.id and part is not name for whole in given for part in _taken(whole)):
            return True
    return False


def _below(modules: list[Module], state: State, depth: int = 0) -> Iterator[int]:
    """The identities of modules and of what they were made of."""
    for module in modules:
        yield module.oid
        if depth < _DEEPEST:
            yield from _below(list(CHILDREN.of(state.heap, module.oid) or ()), state, depth + 1)


def _cares(info: ClassInfo) -> bool:
    """Whether a class registers modules by name, or has ways of its own to reach them."""
    if any(info.method(name) is not None for name in _OWN_WAYS):
        return True
    # by whatever it is called: `super().add_module` is a method of no name
    called = (names.method(node) or names.dotted(node.func) for node in info.calls)
    return any(name in _REGISTERS for name in called) or any(map(_registers_for_another, info.calls))


def _registers_for_another(call: ast.Call) -> bool:
    """Whether a call gives another module than ``self`` a parameter or a buffer by name: those of modules in a list."""
    method = call.func
    return (
        isinstance(method, ast.Attribute)
        and method.attr in ("register_parameter", "register_buffer")
        and not (isinstance(method.value, ast.Name) and method.value.id == "self")
    )


@functools.lru_cache(maxsize=1)
def _handed_on(tree: ast.Module) -> frozenset[str]:
    """The attributes that a file hands to calls which may register what they hold: `nn.Sequential(*self.layers)`."""
    found: set[str] = set()
    for node in nodes.walk(tree):
        if isinstance(node, ast.Call) and names.dotted(node.func) not in _LOOKS:
            found.update(part.attr for given in nodes.given(node) for part in _held(given))
    return frozenset(found)


def _passed_on(constructor: FunctionInfo) -> frozenset[str]:
    """The attributes of which a constructor hands single items on: ``for part in self.parts: chain.append(part)``."""
    of_name: dict[str, set[str]] = {}
    for loop in (node for node in constructor.nodes if isinstance(node, ast.For)):
        for name in names.inside(loop.target):
            of_name.setdefault(name, set()).update(filter(None, map(names.of_self, nodes.walk(loop.iter))))
    found: set[str] = set()
    for call in constructor.calls if of_name else ():
        if names.dotted(call.func) not in _LOOKS:
            given = (part.id for part in nodes.given(call) if isinstance(part, ast.Name))
            found.update(attr for name in given for attr in of_name.get(name, ()))
    return frozenset(found)


def _deleted(constructor: FunctionInfo) -> frozenset[str]:
    """The attributes that a constructor deletes again: what was made of them is kept elsewhere."""
    targets = (target for node in constructor.nodes if isinstance(node, ast.Delete) for target in node.targets)
    return frozenset(filter(None, map(names.of_self, targets)))


def _held(node: ast.expr) -> Iterator[ast.Attribute]:
    """The attribute whose items an argument gives: `self.layers`, `*self.layers`, `list(self.layers.values())`."""
    if isinstance(node, ast.Starred):
        yield from _held(node.value)
    elif isinstance(node, ast.Attribute):
        yield node
    elif isinstance(node, ast.Call) and names.dotted(node.func) in _ALIKE:
        yield from (found for given in node.args for found in _held(given))
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _VIEWS:
        yield from _held(node.func.value)
