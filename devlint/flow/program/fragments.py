"""Names that a file binds nowhere: in an example of a documentation, a part of a notebook, or a star's."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from devlint.flow.catalog.concepts import FRAGMENT_NAMES, SHORT_NAMES
from devlint.flow.catalog.libraries import Catalog
from devlint.flow.syntax import bindings, names, nodes

_WORDS = (
    *("torch", ".backward(", "nn.Module", "nn.Linear", "DataLoader(", "DDP(", ".cuda("),
    *('.to("cuda', ".to('cuda", ".to(device", ".to(self.device", ".to(model.device"),
)
"""What the code has of which something can be said: torch's name, or what is hardly written for anything else."""


def speaks_of_torch(text: str) -> bool:
    """Whether a text may have to do with torch."""
    return any(word in text for word in _WORDS)


def meant(tree: ast.Module, text: str, imports: dict[str, str], star: bool, catalog: Catalog) -> dict[str, str]:
    """What everybody means by names of torch that the file uses and binds nowhere, by the names."""
    if star:
        # what a star brings in cannot be seen, but these names have one meaning
        return SHORT_NAMES
    used = [name for name in FRAGMENT_NAMES if name not in imports and _uses(text, name)]
    if not used or catalog.is_foreign(imports.values()):
        return {}
    bound = {name for node in nodes.walk(tree) for name in _bound(node)}
    return {name: FRAGMENT_NAMES[name] for name in used if name not in bound}


def _uses(text: str, name: str) -> bool:
    """Whether a text may call a name, or an attribute of it."""
    return any(f"{name}{end}" in text and re.search(rf"(?<![\w.]){name}\{end}", text) for end in ".(")


def _bound(node: ast.AST) -> Iterable[str]:
    """The names that a node itself binds."""
    return names.imported(node) if isinstance(node, (ast.Import, ast.ImportFrom)) else bindings.bound_by(node)
