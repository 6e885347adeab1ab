"""Escape: what is handed to code that cannot be followed, which may do with it what nobody sees."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from devlint.flow.core.interpreter import Component, Interpreter
from devlint.flow.domain.objects import Stateful
from devlint.flow.domain.tensors import Loader, Tensor
from devlint.flow.domain.values import CONTAINERS, Mapping, Sequence, Value
from devlint.flow.program.symbols import FunctionInfo


class Escapes(Component):
    """What has escaped in a file: loaders by their identity, samplers and creations of tensors by their nodes.

    ``released`` are the loaders that went to where copies are made with ``non_blocking=True``.
    """

    shared = True

    def __init__(self, interpreter: Interpreter) -> None:
        self.loaders: set[int] = set()
        self.released: set[int] = set()
        self.samplers: set[ast.AST] = set()
        self._creations: set[int] = set()

    def data(self, values: Iterable[Value]) -> None:
        """Loaders and samplers among ``values`` go where they cannot be followed."""
        for value in values:
            if isinstance(value, Loader):
                self.loaders.update(value.oids)
            elif isinstance(value, Stateful):
                self.sampler(value)
            elif type(value) in CONTAINERS:
                self._data_in(value)

    def _data_in(self, value: Value) -> None:
        if isinstance(value, Sequence) and value.items:
            self.data(value.items)
        elif isinstance(value, Mapping):
            self.data(held for _, held in value.items)

    def sampler(self, value: Stateful) -> None:
        """Code that cannot be seen from here gets what may be a sampler, and may tell it the epoch."""
        if value.node is not None:
            self.samplers.add(value.node)

    def tensors(self, values: Iterable[Value]) -> None:
        """Tensors go where nobody follows them, or to whoever calls: what is suspected of them may come true there."""
        for value in values:
            held = value.item if isinstance(value, Sequence) else value
            if isinstance(held, Tensor) and held.origin.node is not None:
                self._creations.add(id(held.origin.node))

    def everything(self, values: tuple[Value, ...]) -> None:
        """Loaders, samplers and tensors among ``values`` go where they cannot be followed."""
        self.data(values)
        self.tensors(values)

    def into(self, values: tuple[Value, ...], info: FunctionInfo) -> None:
        """Loaders, samplers and tensors among ``values`` go into a function that is not followed."""
        self.everything(values)
        nodes = info.nodes if info.owner is None else info.owner.nodes
        options = (node for node in nodes if isinstance(node, ast.keyword) and node.arg == "non_blocking")
        given = [value for value in values if isinstance(value, Loader)]
        if given and any(isinstance(node.value, ast.Constant) and node.value.value is True for node in options):
            self.released.update(oid for value in given for oid in value.oids)

    def is_out(self, creation: ast.AST | None) -> bool:
        """Whether a tensor that was created at a node has escaped."""
        return id(creation) in self._creations
