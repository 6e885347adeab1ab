"""Loaders that train a model which several processes share: whether each process gets a part of the data."""

from __future__ import annotations

import ast
import re

from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.objects import Instance, Stateful
from devlint.flow.domain.tensors import Batches
from devlint.flow.domain.values import Sequence, Value, is_literal
from devlint.flow.models.data.datasets import in_memory
from devlint.flow.program.symbols import FunctionInfo
from devlint.flow.syntax import names, nodes
from devlint.flow.transfer.escapes import Escapes
from devlint.sites.base import Step
from devlint.sites.loaders import Idle, Training

_SPLIT_NAME = r"(?i)rank|world|shard|replica|process|worker"
_SPLIT = r"\.shard\(|split_dataset_by_node|rank\s*::|range\(\s*[\w.]*rank|[\w)\]]\[[\w.]*rank\b"
"""How a data set, or a list of indices, is split by hand."""

_IDENTITY = (ast.Is, ast.IsNot)
_ASKING = frozenset({"len", "isinstance", "hasattr"})
"""Functions of Python that a sampler is given without being used."""


class DataShares:
    """What the loaders of a file are to the processes that run it."""

    def __init__(self, text: str, escapes: Escapes) -> None:
        self._escapes = escapes
        self._text = text
        self._wrapped: dict[FunctionInfo | None, Step] = {}
        self._made: dict[int, _Made] = {}
        self._samplers: dict[ast.AST, bool] = {}

    def wrap(self, frame: Frame, node: ast.AST) -> None:
        """A model is wrapped for several processes."""
        self._wrapped.setdefault(frame.outermost.info, Step(node, "the model is shared by several processes here"))

    def sampler(self, frame: Frame, call: Call, path: str) -> Stateful:
        """A sampler for several processes is made."""
        idle = _idle(frame, call)
        if idle is not None:
            frame.emit(idle)
        shuffle = call.keywords.get("shuffle")
        self._samplers[call.node] = shuffle is None or is_literal(shuffle, True)
        self._escapes.samplers.discard(call.node)
        return Stateful(path, node=call.node)

    def make(self, frame: Frame, call: Call, oid: int) -> None:
        """A loader is made."""
        made = self._made.get(oid)
        if made is None:
            made = self._made[oid] = _Made(call, frame)
        made.roots.add(frame.outermost.info)

    def loop(self, frame: Frame, node: ast.For | ast.AsyncFor, item: Value) -> None:
        """A loop gets items, perhaps the batches of a loader, and perhaps trains with them."""
        loaders = _loaders(item) if self._made else ()
        if not loaders or "backward" not in _identifiers(node):
            return
        for made in filter(None, map(self._made.get, loaders)):
            made.trains = True
            if frame.loops and made.epochs is None:
                made.epochs = Step(frame.loops[-1].node, "every epoch comes here")

    def training(self, oid: int) -> Training | None:
        """How a loader is used for training, ``None`` where that is not seen."""
        made = self._made.get(oid)
        if made is None or not made.trains:
            return None
        wrapped = next((self._wrapped[root] for root in made.roots if root in self._wrapped), None)
        sampler = made.call.argument(3, "sampler")
        step = None
        # a loader that is to shuffle besides raises
        alone = not is_literal(made.call.argument(2, "shuffle"), True)
        if alone and isinstance(sampler, Stateful) and sampler.node is not None and self._shuffles(sampler.node):
            step = None if "set_epoch" in self._text else Step(sampler.node, "this sampler")
        whole = wrapped is not None and made.whole() and re.search(_SPLIT, self._text) is None
        return Training(in_memory(made.call.argument(0, "dataset")), made.epochs, wrapped, step, whole)

    def _shuffles(self, sampler: ast.AST) -> bool:
        """Whether a sampler shuffles, and nobody but the code that is seen can tell it the epoch."""
        return self._samplers.get(sampler, False) and sampler not in self._escapes.samplers


class _Made:
    """A loader, the code around it, and what became of it."""

    def __init__(self, call: Call, frame: Frame) -> None:
        self.call = call
        self.roots: set[FunctionInfo | None] = set()
        self.trains = False
        self.epochs: Step | None = None
        self._inside = frame.code.own
        # under a condition, be it one that this call has settled: another call may get the sampler in another branch
        main = frame.info is None and _in_main(frame.interpreter.tree, call.node)
        around = [part for part in self._inside if isinstance(part, ast.If) and nodes.covers(part, call.node)]
        self._sometimes = max(frame.branches, len(around)) > main

    def whole(self) -> bool:
        """Whether the loader goes through all of its data set, which is not seen to be a part of another."""
        call = self.call
        given = {"sampler", "batch_sampler"} & set(call.keywords)
        if given or call.open or call.starred or len(call.positional) > 3 or self._sometimes:
            return False
        if not is_literal(call.argument(2, "shuffle"), True) and not _indexed(call.argument(0, "dataset")):
            return False
        node = call.argument_node(0, "dataset")
        return node is not None and not self._by_rank(node)

    def _by_rank(self, node: ast.expr) -> bool:
        """Whether anything that goes into the data set is named after a rank, or the like."""
        seen: set[str] = set()
        left = _identifiers(node)
        while left:
            seen |= left
            values = [
                part.value
                for part in self._inside
                if isinstance(part, ast.Assign) and any(_identifiers(target) & left for target in part.targets)
            ]
            if any(isinstance(value, ast.Subscript) and _narrows(value, left) for value in values):
                return True
            left = {name for value in values for name in _identifiers(value)} - seen
        return any(re.search(_SPLIT_NAME, name) for name in seen)


def _idle(frame: Frame, call: Call) -> Idle | None:
    """A sampler whose name is read only to tell it the epoch, or to ask about it; ``None`` where it may have a use."""
    statement = next((outer for outer in frame.code.of(ast.Assign) if nodes.holds(outer, call.node)), None)
    if frame.info is None or statement is None or len(statement.targets) != 1:
        return None
    (target,) = statement.targets
    inside = list(ast.walk(frame.info.node))
    if not isinstance(target, ast.Name) or any(isinstance(part, (ast.Global, ast.Nonlocal)) for part in inside):
        return None
    told = [part for part in inside if isinstance(part, ast.Attribute) and part.attr == "set_epoch"]
    asked = [part.left for part in inside if isinstance(part, ast.Compare) and isinstance(part.ops[0], _IDENTITY)]
    asked += [part.test for part in inside if isinstance(part, (ast.If, ast.IfExp))]
    calls = (part for part in inside if isinstance(part, ast.Call) and names.dotted(part.func) in _ASKING)
    asked += [node for part in calls for node in nodes.given(part)[:1]]
    idle = {id(node) for node in (*asked, *(part.value for part in told))}
    reads = (part for part in inside if isinstance(part, ast.Name) and part.id == target.id)
    if any(isinstance(part.ctx, ast.Load) and id(part) not in idle for part in reads):
        return None
    first = next((part for part in told if names.is_name(part.value, target.id)), None)
    return Idle(call.node, scope_of(frame), None if first is None else Step(first, "it is told the epoch here"))


def _narrows(taken: ast.Subscript, names: set[str]) -> bool:
    """Whether something becomes a selection of itself, which may be the share of a process: ``rows = rows[mine]``."""
    selects = isinstance(taken.slice, (ast.Name, ast.Attribute))
    return selects and isinstance(taken.value, ast.Name) and taken.value.id in names


def _identifiers(node: ast.AST) -> set[str]:
    inside = nodes.walk(node)
    named = names.inside(node) | {part.attr for part in inside if isinstance(part, ast.Attribute)}
    return named | {part.arg for part in inside if isinstance(part, ast.keyword) and part.arg}


def _indexed(dataset: Value | None) -> bool:
    """Whether a data set is known to be one that a sampler can split."""
    if isinstance(dataset, Instance):
        return dataset.cls.method("__getitem__") is not None and dataset.cls.method("__iter__") is None
    return isinstance(dataset, Stateful) and (bool(dataset.tensors) or ".datasets." in dataset.path)


def _loaders(item: Value) -> tuple[int, ...]:
    """The loader of whose batches an item is made, or those of which it is one; empty where there is none."""
    if isinstance(item, Batches):
        return item.loaders
    parts = map(_loaders, item.items or ()) if isinstance(item, Sequence) else ()
    return next(filter(None, parts), ())


def _in_main(tree: ast.Module, node: ast.AST) -> bool:
    """Whether a node stands under ``if __name__ == "__main__"``."""
    blocks = (block for block in tree.body if isinstance(block, ast.If) and nodes.covers(block, node))
    return any("__name__" in _identifiers(block.test) for block in blocks)
