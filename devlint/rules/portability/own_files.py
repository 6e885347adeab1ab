"""Whether a file that a program loads is its own: it saves files itself, has trained before, or reads from memory."""

from __future__ import annotations

import ast
from functools import lru_cache

from devlint.rules.code.blocks import around, method_of, receiver
from devlint.source.syntax import walk
from devlint.source.tree import Source

_WRITING = ("save", "shutil.copy", "shutil.copyfile", "shutil.copy2", "shutil.move")
_TRAINING = ("train", "fit")
_APART = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
"""What does not run where it stands."""


def made_here(source: Source, node: ast.AST) -> bool:
    """Whether what a call loads was saved by the same program, as far as its file shows: on a machine like this one."""
    if not isinstance(node, ast.Call) or not node.args:
        return False
    file = node.args[0]
    from_memory = isinstance(file, ast.Call) and ast.unparse(file.func).endswith("BytesIO")
    return from_memory or _saves(source.tree) or _has_trained(source, node, file)


@lru_cache(maxsize=8)
def _saves(tree: ast.AST) -> bool:
    """Whether a file saves or copies something to a path: ``torch.save(net.state_dict(), path)``."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and len(node.args) > 1)
    return any(ast.unparse(call.func).endswith(_WRITING) for call in calls)


def _has_trained(source: Source, node: ast.Call, file: ast.expr) -> bool:
    """Whether the function has trained before, or the path is kept by an object that has: ``trainer.best_path``."""
    rest = list(ast.iter_child_nodes(around(source, node)))
    while rest:
        part = rest.pop()
        if isinstance(part, ast.Attribute) and part.attr == "backward" and part.lineno < node.lineno:
            return True
        if not isinstance(part, _APART):
            rest += ast.iter_child_nodes(part)
    if not isinstance(file, ast.Attribute):
        return False
    calls = (part for part in walk(around(source, node)) if isinstance(part, ast.Call) and part.lineno < node.lineno)
    trained = (receiver(call) for call in calls if method_of(call) in _TRAINING)
    return ast.unparse(file.value) in (ast.unparse(one) for one in trained if one is not None)
