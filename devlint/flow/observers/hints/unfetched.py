"""Arrays made of what is left where it is, although the like of it is copied to the host, or a network computes it."""

from __future__ import annotations

import ast
import re

from devlint.device import Role
from devlint.flow.catalog.concepts import TENSOR
from devlint.flow.catalog.methods import FETCHES, MOVERS
from devlint.flow.core.call import Call
from devlint.flow.core.events import Observer
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.tensors import Tensor, as_tensor
from devlint.flow.domain.values import Opaque, Unknown, Value
from devlint.flow.program.symbols import ClassInfo, FunctionInfo
from devlint.flow.syntax import names
from devlint.flow.syntax.nodes import derived
from devlint.immutable import immutable, replace
from devlint.sites.base import Step
from devlint.sites.placement import HostRead

_ASKS = re.compile(r"cuda|gpu|device|cpu")
"""What a test speaks of that keeps apart what is on the host and what is not."""
_LONGEST_WAY = 4


class Unfetched(Observer):
    """Reads of the host of what is elsewhere, if the code around is right about the like of it."""

    def on_method(self, frame: Frame, call: Call, receiver: Value, node: ast.Attribute) -> None:
        """``x.numpy()``, where another line says ``x.cpu().numpy()``; ``x.detach().numpy()``."""
        if node.attr != "numpy" or call.node.args or call.node.keywords or frame.info is None:
            return
        imported = frame.interpreter.index.imports.values()
        if frame.state.hosted or frame.interpreter.catalog.is_foreign(imported) or not _is_anywhere(frame, receiver):
            return
        read = _Read.of(call.node)
        if read is None or read.moved or _asks(frame.info):
            return
        like, operand = _fetched_like(frame.info, read), frame.operand(node.value, receiver)
        if like is not None:
            told = replace(operand, story=(Step(like, "what is like it is copied to the host first here"),))
            frame.emit(HostRead(call.node, scope_of(frame), f"{TENSOR}.numpy", "like", (told,)))
        elif "detach" in read.through:
            frame.emit(HostRead(call.node, scope_of(frame), f"{TENSOR}.numpy", "graph", (operand,)))


def _is_anywhere(frame: Frame, value: Value) -> bool:
    """Whether nothing but the code around says where something is."""
    if not isinstance(value, (Tensor, Opaque, Unknown)):
        return False
    tensor = as_tensor(value)
    place = frame.settled(tensor.device)
    given = not tensor.certain and all(leaf.role is Role.INPUT for leaf in place.leaves())
    return not tensor.near.known and (given or not place.known)


@immutable(frozen=True, slots=True)
class _Read:
    """An array that is made of something: what ``whole`` names, and the methods that it has come through."""

    node: ast.Call
    whole: str
    through: frozenset[str]

    @property
    def moved(self) -> bool:
        """Whether it is brought somewhere first."""
        return not self.through.isdisjoint(MOVERS | FETCHES)

    @property
    def fetched(self) -> bool:
        """Whether it is copied to the host first."""
        return "cpu" in self.through

    @staticmethod
    def of(node: ast.Call) -> _Read | None:
        """The read that a call of ``numpy`` is, of something that has a name."""
        whole, through = _way(node.func.value) if isinstance(node.func, ast.Attribute) else ("", frozenset())
        return _Read(node, whole, through) if whole else None


def _way(node: ast.expr) -> tuple[str, frozenset[str]]:
    """The name at which a chain of methods begins, and the methods."""
    through: set[str] = set()
    while isinstance(node, (ast.Call, ast.Attribute, ast.Subscript)):
        own = names.of_self(node.func if isinstance(node, ast.Call) else node)
        if own:
            return f"self.{own}", frozenset(through)
        if isinstance(node, ast.Call):
            if not isinstance(node.func, ast.Attribute):
                return "", frozenset()
            through.add(node.func.attr)
            node = node.func.value
        else:
            node = node.value
    return (node.id if isinstance(node, ast.Name) else ""), frozenset(through)


@derived
def _asks(info: FunctionInfo) -> bool:
    """Whether a function asks where something is, or whether there is an accelerator."""
    return any(isinstance(part, (ast.If, ast.IfExp)) and _ASKS.search(names.code(part.test)) for part in info.nodes)


@derived
def _fetched(info: FunctionInfo) -> list[_Read]:
    """What a function makes arrays of once it has copied it to the host."""
    calls = (node for node in info.own if isinstance(node, ast.Call) and names.method(node) == "numpy")
    return [read for read in map(_Read.of, calls) if read is not None and read.fetched]


@derived
def _fetched_of(info: ClassInfo) -> list[_Read]:
    """The same of all methods of a class."""
    return [read for method in info.methods.values() for read in _fetched(method)]


def _fetched_like(info: FunctionInfo, read: _Read) -> ast.Call | None:
    """Where what is like it is copied to the host: the same thing, or what is computed from it or from what it is from.

    In a class it is the same attribute, or, of what is taken out of its graph, something else that is.
    """
    if not read.whole.startswith("self."):
        origins = _origins(info, read.whole)
        return next((one.node for one in _fetched(info) if one.whole in origins), None)
    for one in _fetched_of(info.owner) if info.owner is not None else ():
        if one.whole == read.whole or "detach" in one.through & read.through:
            return one.node
    return None


def _origins(info: FunctionInfo, name: str) -> set[str]:
    """A name, and those that it is computed from, one after the other, where it is."""
    found = {name}
    for _ in range(_LONGEST_WAY):
        given = [node.value for node in info.of(ast.Assign) if name in map(names.dotted, node.targets)]
        name, through = _way(given[0]) if len(given) == 1 and isinstance(given[0], ast.Call) else ("", frozenset())
        if not name or name in found or not through.isdisjoint(MOVERS | FETCHES):
            break
        found.add(name)
    return found
