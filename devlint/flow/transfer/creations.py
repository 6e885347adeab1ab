"""What is created on the CPU only to be moved: the creation behind a move, where nothing else wants it there."""

from __future__ import annotations

import ast
from bisect import bisect_right
from dataclasses import dataclass, field

from devlint.device import Role
from devlint.flow.catalog import torch_table
from devlint.flow.catalog.creation import ARRAY_FUNCTIONS, ARRAYS, CONVERTERS, is_legacy
from devlint.flow.core.interpreter import Frame
from devlint.flow.domain.tensors import Batches, DeviceValue, Tensor
from devlint.flow.domain.values import Const, Named, Opaque
from devlint.flow.program import def_use
from devlint.flow.program.def_use import place, read
from devlint.flow.program.symbols import FunctionInfo
from devlint.flow.syntax import names, nodes
from devlint.immutable import replace
from devlint.sites.base import Creation
from devlint.source.syntax import says_none

_CARRIERS = frozenset(
    """view reshape flatten unsqueeze squeeze unsqueeze_ squeeze_ expand expand_as view_as permute transpose t repeat
    tile contiguous clone detach long int float double half bfloat16 bool byte short type flip roll movedim swapaxes
    zero_ fill_ normal_ uniform_ random_ bernoulli_ add sub mul div add_ sub_ mul_ div_ neg abs pow exp log sin cos
    sqrt rsqrt clamp tril triu diag softmax log_softmax cumsum sum mean unflatten requires_grad_""".split()
)
"""Methods that a tensor may as well go through on the accelerator, at no more cost."""
_JOINERS = frozenset(
    """stack cat concat hstack vstack meshgrid outer exp log sin cos pow sqrt tril triu flip unsqueeze reshape
    abs mul add sub div""".split()
)
"""Functions of torch of which the same is true."""
_ARRAY_METHODS = frozenset({"astype", "copy", "ravel"})
_ATTRIBUTES = frozenset({"T", "mT", "H", "mH", "data"})
_MOST_STEPS = 40
"""Statements between a creation and its move, beyond which the two are not the same thought any more."""


def creation(frame: Frame, move: ast.Call, receiver: ast.expr, tensor: Tensor) -> Creation | None:
    """The factory call behind what ``move`` moves, where this move is all that becomes of it where it is made."""
    if frame.interpreter.muted or frame.inlined:
        return None
    return _made_by_default(frame, move, receiver, tensor) or _made_like_another(frame, move, receiver)


def _made_by_default(frame: Frame, move: ast.Call, receiver: ast.expr, tensor: Tensor) -> Creation | None:
    """The call that made a tensor on the default device."""
    made = tensor.origin.node
    if not tensor.origin.factory or not isinstance(made, ast.Call):
        return None
    if _converts(tensor.origin.factory) and (array := array_behind(frame, move, receiver)) is not None:
        return array
    if is_legacy(tensor.origin.factory) and not _counts(frame, made):
        return None
    here = def_use.holds(frame.code, made)
    helper = None if here else _helper(frame, made)
    if helper is None and not here:
        return None
    others = _others(frame, tensor) if helper is None else ()
    if others is None:
        return None
    trail = Trail(frame, made, helper, others=tuple(other.node for other in others))
    if not (trail.passes_on(receiver) or moved_later(trail, move, receiver)):
        return None
    if helper is not None:
        return Creation(made, tensor.origin.factory, helper=helper.name)
    return Creation(made, tensor.origin.factory, _generator(frame, made), others=others)


def _others(frame: Frame, tensor: Tensor) -> tuple[Creation, ...] | None:
    """What makes the tensor on other paths; ``None`` where something does that is no factory of this function."""
    found = []
    for made in tensor.origin.alternatives:
        path = _path(frame, made) if isinstance(made, ast.Call) else ""
        entry = torch_table.function(path)
        if not isinstance(made, ast.Call) or not def_use.holds(frame.code, made):
            return None
        if entry is None or entry.rule != "default_or_kwarg" or path in CONVERTERS:
            return None
        found.append(Creation(made, path, _generator(frame, made)))
    return tuple(found)


def _made_like_another(frame: Frame, move: ast.Call, receiver: ast.expr) -> Creation | None:
    """The call that made a tensor in the shape of another one, and where that one is."""
    if not frame.interpreter.index.mentions("_like("):
        return None
    for call in frame.inside:
        if not isinstance(call, ast.Call) or call.lineno > move.lineno or not names.dotted(call.func).endswith("_like"):
            continue
        entry = torch_table.function(path := _path(frame, call))
        if entry is None or entry.rule != "like_input_or_kwarg" or not nodes.given(call) or _says_where(call):
            continue
        trail = Trail(frame, call, None)
        if trail.passes_on(receiver) or moved_later(trail, move, receiver):
            return Creation(call, path, like=ast.unparse(nodes.given(call)[0]))
    return None


def _says_where(call: ast.Call) -> bool:
    """Whether a creation is told a device, or may be."""
    return any(keyword.arg in (None, "device", "out") for keyword in call.keywords)


def _converts(path: str) -> bool:
    """Whether a function, or a constructor by type, makes a tensor of an array."""
    return path in CONVERTERS or is_legacy(path)


def array_behind(frame: Frame, move: ast.Call, receiver: ast.expr) -> Creation | None:
    """The call of NumPy behind an array of numbers alone, or a tensor of one, into which nothing else was written.

    ``move`` is what takes it to a device, ``receiver`` what it takes there.
    """
    if not frame.interpreter.index.mentions("numpy"):
        return None
    for call in frame.inside:
        if not isinstance(call, ast.Call) or call.lineno > move.lineno or (path := _path(frame, call)) not in ARRAYS:
            continue
        trail = Trail(frame, call, None, arrays=True)
        if trail.passes_on(receiver) or moved_later(trail, move, receiver):
            return Creation(call, path, array=True)
    return None


def _path(frame: Frame, call: ast.Call) -> str:
    return frame.interpreter.index.resolve(names.dotted(call.func))


@dataclass
class Trail:
    """Follows a creation through expressions and the names that hold it."""

    frame: Frame
    made: ast.Call
    helper: FunctionInfo | None
    live: set[str] = field(default_factory=set)
    spent: set[str] = field(default_factory=set)
    """Names of what has got another name or shape since: whoever reads them wants the tensor once more."""
    arrays: bool = False
    """Whether it begins with an array, to which everything that is no number brings values of the host."""
    others: tuple[ast.Call, ...] = ()
    """The creations that take the place of this one on other paths."""

    def passes_on(self, node: ast.AST) -> bool:
        """Whether an expression only hands on what was created, and needs the CPU for nothing."""
        if isinstance(node, ast.Name):
            return node.id in self.live
        if isinstance(node, ast.Call):
            return self._is_origin(node) or self._carries(node)
        if isinstance(node, ast.Attribute):
            return node.attr in _ATTRIBUTES and self.passes_on(node.value)
        if isinstance(node, ast.Subscript):
            backwards = self.arrays and any(getattr(part, "step", None) for part in nodes.walk(node.slice))
            return not backwards and self.passes_on(node.value) and self._neutral(node.slice)
        if isinstance(node, ast.UnaryOp):
            return self.passes_on(node.operand)
        if isinstance(node, ast.IfExp):
            return self.passes_on(node.body) and self.passes_on(node.orelse) and self._neutral(node.test)
        parts = getattr(node, "elts", ())
        if isinstance(node, ast.BinOp):
            parts = (node.left, node.right)
        elif isinstance(node, ast.Compare):
            parts = (node.left, *node.comparators)
        return any(self.passes_on(part) for part in parts) and self._all_go_along(parts)

    def _carries(self, node: ast.Call) -> bool:
        """Whether a call is an operation that is as good on the accelerator."""
        given = nodes.given(node)
        path = _path(self.frame, node)
        if path.startswith(("torch.", "numpy.")):
            own = self.arrays and (path in ARRAY_FUNCTIONS or _converts(path))
            known = own or (path.startswith("torch.") and path.rpartition(".")[2] in _JOINERS)
            return known and any(self.passes_on(part) for part in given) and self._all_go_along(given)
        carriers = _CARRIERS | _ARRAY_METHODS if self.arrays else _CARRIERS
        if not isinstance(node.func, ast.Attribute) or node.func.attr not in carriers:
            return False
        return self.passes_on(node.func.value) and self._all_go_along(given)

    def _all_go_along(self, parts: list[ast.expr] | tuple[ast.expr, ...]) -> bool:
        return all(self._neutral(part) or self.passes_on(part) for part in parts)

    def _is_origin(self, node: ast.Call) -> bool:
        """Whether a call makes a tensor on the CPU because nobody said otherwise."""
        if node is self.made:
            return True
        if self.helper is not None:
            return names.dotted(node.func).rpartition(".")[2] == self.helper.name
        path = _path(self.frame, node)
        if self.arrays and path in ARRAYS:
            return True
        entry = torch_table.function(path)
        fresh = entry is not None and entry.rule == "default_or_kwarg" and path.startswith("torch.")
        return fresh and not _says_where(node)

    def _neutral(self, node: ast.AST) -> bool:
        """Whether an expression has no tensor in it."""
        return all(not self._is_tensor(name) and name.id not in self.live for name in read(node)) and not any(
            isinstance(inner, ast.Call) and self._is_origin(inner) for inner in nodes.walk(node)
        )

    def _is_tensor(self, name: ast.Name) -> bool:
        value = self.frame.lookup(name.id)
        if self.arrays:
            number = isinstance(value, Opaque) and value.hint == "number"
            return not (number or isinstance(value, (Const, Named, DeviceValue)))
        return isinstance(value, (Tensor, Batches)) or (
            isinstance(value, Opaque) and value.hint in ("tensor", "tensors")
        )


def moved_later(trail: Trail, move: ast.expr, receiver: ast.expr, within: ast.expr | None = None) -> bool:
    """Whether the creation stands in a statement of its own before the move, and is not wanted in between or after.

    ``within`` is the expression around the receiver in which it may be named once more.
    """
    info = trail.frame.info
    body = info.node.body if info else trail.frame.interpreter.tree.body
    found = _placed(body, move)
    if found is None:
        return False
    block, last = found
    near = range(last - 1, max(-1, last - _MOST_STEPS), -1)
    first = next((at for at in near if _creates(trail, block[at])), None)
    if trail.others:
        ways = (trail.made, *trail.others)
        first = min((at for at in near if any(_spans(block[at], way) for way in ways)), default=None)
    if first is None or hasattr(block[last], "body"):
        return False
    for statement in block[first:last]:
        if not _goes_on(trail, statement):
            return False
    wanted = [name for name in read(block[last]) if name.id in trail.live | trail.spent]
    inside = set(map(id, nodes.walk(within or receiver)))
    if not trail.passes_on(receiver) or any(id(name) not in inside for name in wanted):
        return False
    return not _wanted_after(trail, block[last], (trail.live | trail.spent) - set(_stored(block[last])))


def _creates(trail: Trail, statement: ast.stmt) -> bool:
    """Whether a statement gives a name to what the creation makes."""
    value = getattr(statement, "value", None)
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or not isinstance(value, ast.expr):
        return False
    calls = [node for node in nodes.walk(value) if isinstance(node, ast.Call)]
    if trail.helper is None:
        return any(node is call for node in calls for call in (trail.made, *trail.others))
    return any(trail._is_origin(node) for node in calls)


def _goes_on(trail: Trail, statement: ast.stmt) -> bool:
    """Whether a statement leaves the creation alone, or only gives it another name or shape."""
    if trail.others and isinstance(statement, ast.If):
        return _either_goes_on(trail, statement)
    touched = [name for name in read(statement) if name.id in trail.live]
    targets = [name for target in _targets(statement) for name in names_in(target)]
    if any(name.id in trail.spent for name in read(statement)):
        return False
    if not touched and not _creates(trail, statement):
        return trail.live.isdisjoint(_stored(statement))
    value = getattr(statement, "value", None)
    plain = isinstance(statement, (ast.Assign, ast.AnnAssign)) and len(targets) == len(_stored(statement))
    if not plain or not targets or value is None or not trail.passes_on(value):
        return False
    gone = {name.id for name in touched}
    trail.live, trail.spent = (trail.live - gone) | set(targets), (trail.spent | gone) - set(targets)
    return True


def _either_goes_on(trail: Trail, branch: ast.If) -> bool:
    """Whether what was created before a branch, or on each side of it, has the same names after it."""
    if any(name.id in trail.live | trail.spent for name in read(branch.test)):
        return False
    ends = []
    for side in (branch.body, branch.orelse):
        end = replace(trail, live=set(trail.live), spent=set(trail.spent))
        if not all(_goes_on(end, statement) for statement in side):
            return False
        if not (side and isinstance(side[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break))):
            ends.append(end)
    held = [name for end in ends for name in end.live]
    trail.live = {name for name in held if held.count(name) == len(ends)}
    trail.spent = trail.spent.union(*(end.live | end.spent for end in ends)) - trail.live
    return bool(trail.live)


def _targets(statement: ast.stmt) -> list[ast.expr]:
    if isinstance(statement, ast.Assign):
        return statement.targets
    return [statement.target] if isinstance(statement, ast.AnnAssign) else []


def names_in(target: ast.expr) -> list[str]:
    """The names of a target, or of a receiver; none where it is more than names."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return [name for element in target.elts for name in names_in(element)]
    return [node.id for node in nodes.walk(target) if isinstance(node, ast.Name)]


def _stored(statement: ast.stmt) -> list[str]:
    """The names that a statement binds, or writes into."""
    return [
        node.id for node in nodes.walk(statement) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    ]


def _wanted_after(trail: Trail, move: ast.stmt, still: set[str]) -> bool:
    """Whether the function reads the tensor on the CPU once more."""
    if not still:
        return False
    last = def_use.last_read(trail.frame.code)
    end = move.end_lineno or move.lineno
    return any(last.get(name, 0) > end for name in still)


def _placed(body: list[ast.stmt], node: ast.AST) -> tuple[list[ast.stmt], int] | None:
    """The innermost block that ``node`` stands in, and at which statement."""
    at = bisect_right(body, place(node), key=place) - 1
    if at < 0 or not _spans(body[at], node):
        return None
    for block in nodes.blocks(body[at]):
        found = _placed(block, node)
        if found is not None:
            return found
    return body, at


def _spans(outer: ast.stmt, node: ast.AST) -> bool:
    return place(outer) <= place(node) < (outer.end_lineno or 0, outer.end_col_offset or 0)


def _helper(frame: Frame, made: ast.Call) -> FunctionInfo | None:
    """The function of the file that made the tensor and returns it as it is; ``None`` where it does more with it."""
    for info in def_use.functions_around(frame.interpreter.index, made):
        if not info.triggered or not _spans(info.node, made):
            continue
        found = _placed(info.node.body, made)
        if found is None or info.is_generator:
            return None
        block, at = found
        trail = Trail(frame, made, None)
        for statement in block[at:]:
            if isinstance(statement, ast.Return):
                return info if statement.value is not None and trail.passes_on(statement.value) else None
            if hasattr(statement, "body") or not _goes_on(trail, statement):
                return None
    return None


def _counts(frame: Frame, made: ast.Call) -> bool:
    """Whether a constructor by type is given numbers or a display of values, and not values from somewhere."""
    given = made.args[0] if len(made.args) == 1 else None
    if isinstance(given, ast.Name):
        value = frame.lookup(given.id)
        return isinstance(value, Const) or (isinstance(value, Opaque) and value.hint == "number")
    return not isinstance(given, (ast.Call, ast.Attribute, ast.Subscript, ast.BinOp))


def _generator(frame: Frame, made: ast.Call) -> str:
    """What is known of the ``generator=`` of a creation: it is an optional "argument", or something "else"."""
    given = next((keyword.value for keyword in made.keywords if keyword.arg == "generator"), None)
    if given is None or says_none(given):
        return ""
    value = frame.lookup(given.id) if isinstance(given, ast.Name) else None
    known = isinstance(value, Opaque) and value.role is Role.INPUT and value.optional
    return "argument" if known else "else"
