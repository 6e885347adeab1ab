"""A second call that seeds what `torch.manual_seed` has seeded, and how to leave it out."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devlint.finding import Edit
from devlint.rules.base import SourceText
from devlint.rules.code.blocks import blocks_of, removal, statement_of, way_to
from devlint.source.syntax import walk

_SEEDS = ("manual_seed", "random.manual_seed", "cuda.manual_seed", "cuda.manual_seed_all")
_ASKS = frozenset({"is_available", "device_count"})
"""What a condition may call and be left out: questions that change nothing."""


def is_seeded(source: SourceText, call: ast.Call, torch: str) -> bool:
    """Whether everything has the same seed already when ``call`` comes; ``torch`` is what the file calls torch."""
    names = {f"{torch}.{name}" for name in _SEEDS}
    given = _given(call)
    return any(
        ast.unparse(earlier.func) in names and _given(earlier) == given for earlier in _before(way_to(source, call))
    )


def left_out(source: SourceText, call: ast.Call) -> tuple[Edit, ...] | None:
    """The edit that deletes the call, with the condition around it if that has nothing else to decide."""
    found = statement_of(source, call)
    if found is None or not isinstance(found[0], ast.Expr):
        return None
    statement, block = found
    for parent, child in reversed(way_to(source, call)):
        if child is not statement:
            continue
        if isinstance(parent, ast.If) and len(block) == 1 and not parent.orelse and _only_asks(parent.test):
            statement = parent
        else:
            block = next(block for block in blocks_of(parent) if child in block)
            break
    edit = removal(source, statement, block)
    return None if edit is None else (edit,)


def _given(call: ast.Call) -> list[str]:
    return [ast.unparse(argument) for argument in (*call.args, *(keyword.value for keyword in call.keywords))]


def _before(way: list[tuple[ast.AST, ast.AST]]) -> Iterator[ast.Call]:
    """The calls that are statements of their own, on the way to a place, as far back as nothing else is done."""
    for parent, child in reversed(way):
        block = next((block for block in blocks_of(parent) if child in block), [])
        for statement in reversed(block[: block.index(child)] if isinstance(child, ast.stmt) and block else []):
            if not _only_seeds(statement):
                return
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
                yield statement.value
        if isinstance(parent, (ast.For, ast.AsyncFor, ast.While)):
            # the round before may have drawn something
            return


def _only_seeds(statement: ast.stmt) -> bool:
    """Whether a statement draws no number: it calls nothing but what seeds, or asks what there is."""
    called = (ast.unparse(node.func).rpartition(".")[2] for node in walk(statement) if isinstance(node, ast.Call))
    return all("seed" in name or name in _ASKS for name in called)


def _only_asks(test: ast.expr) -> bool:
    calls = (node.func for node in walk(test) if isinstance(node, ast.Call))
    return all(isinstance(function, ast.Attribute) and function.attr in _ASKS for function in calls)
