"""Losses kept from one training step to the next, and with each the graph that led to it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devlint.flow.core.events import Observer
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.scope import scope_of
from devlint.flow.syntax import names, nodes
from devlint.sites.base import Step
from devlint.sites.costs import Keep

_LETS_GO = frozenset({"item", "detach", "detach_", "tolist", "numpy", "data"})
"""Attributes of a tensor that lead to its value without its graph."""
_NUMBERS = frozenset({"float", "int"})
_STILL = frozenset({"sum", "mean", "clone", "float", "double", "cpu", "to", "squeeze", "view", "reshape"})
"""Methods whose result has the graph, too."""
_OF_MANY = frozenset({"sum", "math.fsum"} | {f"torch.{name}" for name in ("stack", "cat", "concat", "hstack")})
"""Functions of a list, which is no tensor though their result is one."""
_WITHOUT_GRAPH = frozenset({"no_grad", "inference_mode"})
_KEEPS_GRAPH = frozenset({"retain_graph", "create_graph"})
_BLOCKS = ("body", "orelse", "finalbody")
_CLOSED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class RetainedGraphs(Observer):
    """Losses that the rounds of a training loop leave behind."""

    def on_step_loop(self, frame: Frame, node: ast.For | ast.AsyncFor | ast.While) -> None:
        """The loop may keep what its steps have computed."""
        rounds = frame.interpreter.loop_text(node)
        losses = _losses(rounds.inside) if rounds.trains else {}
        if not losses:
            return
        meant: dict[tuple[str, str], bool] = {}
        for statement, certain in _statements(node.body):
            found = _accumulation(statement, losses)
            if found is None or not certain:
                continue
            holder, kind, part = found
            if (holder, kind) not in meant:
                meant[holder, kind] = (
                    _is_fresh(node, holder, kind)
                    or _is_queue(rounds.inside, holder)
                    or _is_trained(frame, holder)
                    or _is_own_kind(frame, holder)
                )
            if meant[holder, kind]:
                continue
            done = Step(losses[part.id], "this step is done with it here")
            frame.emit(Keep(part, scope_of(frame), part.id, holder, kind, done, _emptied(rounds.inside, holder, kind)))


def _losses(inside: list[ast.AST]) -> dict[str, ast.AST]:
    """The names whose graph each round goes through backward, once, with the call that does."""
    found: dict[str, ast.Call] = {}
    last: dict[str, ast.Call] = {}
    kept_alive: set[str] = set()
    for node in inside:
        if not isinstance(node, ast.Call) or names.method(node) != "backward":
            continue
        receiver = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        given = {name for part in (*receiver, *node.args) for name in _tensors(part)}
        if any(keyword.arg in _KEEPS_GRAPH or keyword.arg is None for keyword in node.keywords):
            kept_alive |= given
        for name in given:
            found.setdefault(name, node)
            last[name] = node
    made = {name for name in found if _is_made(inside, name) and not _is_replaced(inside, name, last[name])}
    return {name: node for name, node in found.items() if name in made and name not in kept_alive}


def _tensors(value: ast.expr) -> Iterator[str]:
    """The names in an expression that hold a tensor themselves, and not a record with one in a field."""
    if isinstance(value, ast.Name):
        yield value.id
    elif isinstance(value, (ast.BinOp, ast.UnaryOp)):
        for operand in (value.left, value.right) if isinstance(value, ast.BinOp) else (value.operand,):
            yield from _tensors(operand)
    elif isinstance(value, ast.Call):
        if isinstance(value.func, ast.Attribute) and value.func.attr in _STILL:
            yield from _tensors(value.func.value)
        # what is given to a method of something else: `scaler.scale(loss)`
        for argument in value.args if names.called(value) not in _OF_MANY else ():
            yield from _tensors(argument)


def _is_made(inside: list[ast.AST], name: str) -> bool:
    """Whether the rounds compute ``name``, and nothing takes its graph away."""
    values = [node.value for node in inside if isinstance(node, ast.Assign) and name in names.inside(*node.targets)]
    return bool(values) and not any(_lets_go(value) for value in values)


def _is_replaced(inside: list[ast.AST], name: str, done: ast.Call) -> bool:
    """Whether a step that is done with ``name`` goes on to bind it to what is not made of it, as by unpacking."""
    later = (node for node in inside if isinstance(node, ast.Assign) and node.lineno > done.lineno)
    return any(name in names.inside(*node.targets) and name not in names.inside(node.value) for node in later)


def _lets_go(value: ast.expr) -> bool:
    node: ast.expr = value
    while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
        if isinstance(node, ast.Attribute) and node.attr in _LETS_GO:
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _NUMBERS:
            return True
        node = node.func if isinstance(node, ast.Call) else node.value
    return False


def _statements(block: list[ast.stmt]) -> Iterator[tuple[ast.stmt, bool]]:
    """The statements of a loop's body, and whether each records a graph."""
    for statement in block:
        if isinstance(statement, _CLOSED):
            continue
        graph = not (isinstance(statement, (ast.With, ast.AsyncWith)) and _is_without_graph(statement))
        yield statement, True
        for field in _BLOCKS:
            for inner, certain in _statements(getattr(statement, field, None) or []):
                yield inner, certain and graph
        for handler in getattr(statement, "handlers", ()):
            yield from _statements(handler.body)


def _is_without_graph(statement: ast.With | ast.AsyncWith) -> bool:
    return any(names.called(item.context_expr).rpartition(".")[2] in _WITHOUT_GRAPH for item in statement.items)


def _accumulation(statement: ast.stmt, losses: dict[str, ast.AST]) -> tuple[str, str, ast.Name] | None:
    """What a statement keeps a loss in, how, and the loss."""
    holder, value, kind = "", None, "sum"
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
        holder, value = _holder(statement.target), statement.value
    elif isinstance(statement, ast.Assign) and isinstance(statement.value, ast.BinOp) and len(statement.targets) == 1:
        holder = _holder(statement.targets[0])
        left, right = statement.value.left, statement.value.right
        if isinstance(statement.value.op, ast.Add):
            value = right if _holder(left) == holder else left if _holder(right) == holder else None
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        alone = len(call.args) == 1 and not call.keywords
        if isinstance(call.func, ast.Attribute) and call.func.attr == "append" and alone:
            holder, value, kind = _holder(call.func.value), call.args[0], "list"
    part = _part(value, losses) if holder and value is not None else None
    return None if part is None or part.id == holder else (holder, kind, part)


def _holder(node: ast.expr) -> str:
    """What is kept in: a name, an attribute, or an entry of one."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return names.dotted(node)


def _part(value: ast.expr, losses: dict[str, ast.AST]) -> ast.Name | None:
    """The loss in an expression that has its graph as well."""
    if isinstance(value, ast.Name):
        return value if value.id in losses else None
    if isinstance(value, ast.BinOp):
        return _part(value.left, losses) or _part(value.right, losses)
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _STILL:
        return _part(value.func.value, losses)
    return None


def _is_queue(inside: list[ast.AST], holder: str) -> bool:
    """Whether the rounds take out again what others have put in, as a pipeline of micro-batches does."""
    taken = (f"{holder}.pop", f"{holder}.popleft")
    return any(isinstance(node, ast.Call) and names.dotted(node.func) in taken for node in inside)


def _is_fresh(loop: ast.For | ast.AsyncFor | ast.While, holder: str, kind: str) -> bool:
    """Whether every round starts with another holder; one that only some rounds empty grows until then."""
    root = holder.partition(".")[0]
    if isinstance(loop, (ast.For, ast.AsyncFor)) and root in names.inside(loop.target):
        return True
    for statement in loop.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        bound = any(names.dotted(target) == holder or root in names.inside(target) for target in targets)
        if bound and not (kind == "sum" and _mentions(statement, holder)):
            return True
    return False


def _emptied(inside: list[ast.AST], holder: str, kind: str) -> Step | None:
    """Where some of the rounds set the holder back, or empty it."""
    for node in inside:
        again = isinstance(node, ast.Assign) and any(names.dotted(target) == holder for target in node.targets)
        if again and isinstance(node, ast.Assign) and not (kind == "sum" and _mentions(node, holder)):
            return Step(node, "set back here")
        if names.called(node) == f"{holder}.clear":
            return Step(node, "emptied here")
    return None


def _mentions(statement: ast.stmt, holder: str) -> bool:
    return holder in names.chains(statement.value if isinstance(statement, ast.Assign) else statement)


def _is_trained(frame: Frame, holder: str) -> bool:
    """Whether something made of the holder goes backward, too: then its graph is wanted."""
    body = frame.inside
    wanted = {holder}
    for node in body:
        if isinstance(node, ast.Assign) and _mentions(node, holder):
            wanted |= {names.dotted(target) for target in node.targets}
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "backward"
        and not wanted.isdisjoint(names.chains(node.func.value, *node.args))
        for node in body
    )


def _is_own_kind(frame: Frame, holder: str) -> bool:
    """Whether the holder is a queue that forgets, or of a class that may keep less than it is given."""
    around = frame.owner.nodes if frame.owner is not None and holder.startswith("self.") else ()
    for node in (*frame.inside, *frame.interpreter.index.own, *around):
        for target, value in nodes.assigned(node) if isinstance(node, ast.Assign) else ():
            if names.dotted(target) != holder or not isinstance(value, ast.Call):
                continue
            made = frame.interpreter.index.resolve(names.dotted(value.func))
            if any(keyword.arg == "maxlen" for keyword in value.keywords) or made in frame.interpreter.index.classes:
                return True
    return False
