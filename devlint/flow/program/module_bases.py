"""Which bases make a class an ``nn.Module``, by their names or by what the class itself calls."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from devlint.flow.catalog import torch_table
from devlint.flow.catalog.concepts import MODULE, PARAMETER
from devlint.flow.catalog.libraries import Catalog
from devlint.flow.catalog.modules import CONTAINERS
from devlint.flow.syntax import names, nodes

_PLAIN_BASES = frozenset(
    {"object", "ABC", "Generic", "Protocol", "Enum", "NamedTuple", "TestCase", "Dataset", "Exception"}
)


def is_plain(base: str) -> bool:
    """Whether a base of that name has nothing to do with modules."""
    return base.rpartition(".")[2] in _PLAIN_BASES


def is_module_path(path: str, catalog: Catalog) -> bool:
    """Whether a class of that name is a module, as far as the name says so."""
    row = catalog.row(path)
    if row is not None and row.result == "foreign":
        # another framework's, as in MLX and Flax
        return False
    return (
        (row is not None and row.is_a == "module")
        or path.endswith((".nn.Module", ".PreTrainedModel"))
        or torch_table.module(path) is not None
    )


def is_bare(path: str, catalog: Catalog) -> bool:
    """Whether it is a module that has neither parameters nor buffers of its own: a base for others."""
    row = catalog.row(path)
    return path == MODULE or (row is not None and row.is_a == "module" and row.stateless)


def registers(inside: Iterable[ast.AST], has_forward: bool, resolve: Callable[[str], str]) -> bool:
    """Whether the code of a class with an unknown base calls what only a module has."""
    for node in inside:
        if isinstance(node, ast.Call) and names.of_self(node.func) in nodes.REGISTERING:
            return True
        if has_forward and isinstance(node, ast.Assign) and names.of_self(node.targets[0]):
            path = resolve(names.called(node.value))
            if path == PARAMETER or path in CONTAINERS or torch_table.module(path) is not None:
                return True
    return False
