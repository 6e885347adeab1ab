"""Losses kept from one training step to the next, and with each the graph that led to it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from devlint.flow.core.events import Observer
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.scope import scope_of
from devlint.flow.syntax import names, nodes
from devlint.flow.transfer.loop_invariance import networks
from devlint.sites.base import Step
from devlint.sites.costs import Keep, Kept

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
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_CLOSED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class RetainedGraphs(Observer):
    """Losses that the rounds of a training loop leave behind."""

    def on_step_loop(self, frame: Frame, node: ast.For | ast.AsyncFor | ast.While) -> None:
        """The loop may keep what its steps have computed."""
        rounds = frame.interpreter.loop_text(node)
        losses = _losses(rounds.inside) if rounds.trains else {}
        if not losses:
            return
        known = losses.keys() | _parts(rounds.inside, losses, networks(frame))
        meant: dict[tuple[str, str], bool] = {}
        # what some rounds let go of, and what is kept to the end
        found: dict[Step | None, list[Kept]] = {}
        for statement, certain in _statements(node.body):
            kept = _accumulation(statement, known)
            if kept is None or not certain:
                continue
            holder = kept.holder, kept.kind
            if holder not in meant:
                meant[holder] = (
                    _is_fresh(node, *holder)
                    or _is_queue(rounds.inside, kept.holder)
                    or _is_trained(frame, kept.holder)
                    or _is_own_kind(frame, kept.holder)
                )
            if not meant[holder]:
                found.setdefault(_emptied(rounds.inside, *holder), []).append(kept)
        for emptied, some in found.items():
            first = next((kept for kept in some if kept.value in losses), None)
            if first is not None:
                done = Step(losses[first.value], "this step is done with it here")
                others = tuple(kept for kept in some if kept is not first)
                passing = _is_within_a_step(node, rounds.inside) and _are_local(frame, node, some)
                frame.emit(Keep(first.node, scope_of(frame), first, done, emptied, others, passing))


def _is_within_a_step(loop: ast.For | ast.AsyncFor | ast.While, inside: list[ast.AST]) -> bool:
    """Whether all rounds are of one step of the optimizer: micro-batches that are counted, or the rows of a batch."""
    called = {names.called(node).rpartition(".")[2] for node in inside if isinstance(node, ast.Call)}
    if not isinstance(loop, ast.For) or any("step" in name.lower() for name in called):
        return False
    if names.called(loop.iter) == "range":
        # nor is it one where each round has a gradient of its own, or where the data are counted
        return "zero_grad" not in called and not any(names.called(node) == "len" for node in nodes.walk(loop.iter))
    return isinstance(loop.target, ast.Name) and any(
        names.called(node) == f"{loop.target.id}.unsqueeze" for node in inside
    )


def _are_local(frame: Frame, loop: ast.AST, some: list[Kept]) -> bool:
    """Whether what is kept in is made in the round of the loop around this one, or else in the function."""
    loops = [node for node in frame.inside if isinstance(node, _LOOPS) and node is not loop]
    around = [node for node in loops if nodes.holds(node, loop)]
    if not around:
        return all(kept.holder.isidentifier() for kept in some)
    ours = {id(node) for node in nodes.walk(loop)}
    rounds = nodes.walk(min(around, key=lambda loop: (loop.end_lineno or 0) - loop.lineno))
    stored = [node for node in rounds if isinstance(getattr(node, "ctx", None), ast.Store) and id(node) not in ours]
    bound = {names.dotted(node) for node in stored if isinstance(node, (ast.Name, ast.Attribute))}
    return all(kept.holder in bound for kept in some)


def _losses(inside: list[ast.AST]) -> dict[str, ast.Call]:
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
    bound = [node for node in inside if isinstance(node, ast.Assign) and name in names.inside(*node.targets)]
    before = [node for node in bound if node.lineno <= done.lineno]
    return any(
        node.lineno > done.lineno
        and name not in names.inside(node.value)
        and not any(_is_repeated(inside, first, node) for first in before)
        for node in bound
    )


def _is_repeated(inside: list[ast.AST], first: ast.Assign, second: ast.Assign) -> bool:
    """Whether an assignment does the same once more as one before it, and records a graph as that did."""
    entered = [node for node in inside if isinstance(node, (ast.With, ast.AsyncWith)) and nodes.covers(node, second)]
    return names.code(first) == names.code(second) and all(nodes.covers(node, first) for node in entered)


def _parts(inside: list[ast.AST], losses: dict[str, ast.Call], known: Collection[str]) -> set[str]:
    """The code of what is added up to a loss, as far as the rounds compute that of what the ``known`` networks return.

    What else is added may be a number, which cannot be detached.
    """
    apart = [node for node in inside if isinstance(node, (ast.With, ast.AsyncWith)) and _is_without_graph(node)]
    statements = [
        node
        for node in inside
        if isinstance(node, (ast.Assign, ast.AugAssign)) and not any(nodes.covers(other, node) for other in apart)
    ]
    made: set[str] = set()
    for statement in sorted(statements, key=lambda statement: statement.lineno):
        called = {names.called(part).removesuffix(".forward") for part in nodes.walk(statement.value)}
        of_networks = not called.isdisjoint(known) or not made.isdisjoint(names.inside(statement.value))
        if of_networks and not _lets_go(statement.value):
            made |= _bound(statement)
    found: set[str] = set()
    for statement in statements:
        for loss in _bound(statement) & losses.keys():
            found |= {
                names.code(part)
                for part in _addends(statement.value)
                if (name := names.root(part)) in made
                and _is_made(inside, name)
                and not _is_replaced(inside, name, losses[loss])
            }
    return found


def _bound(statement: ast.Assign | ast.AugAssign) -> set[str]:
    return names.inside(*(statement.targets if isinstance(statement, ast.Assign) else [statement.target]))


def _addends(value: ast.expr) -> Iterator[ast.expr]:
    """What is added up in an expression, each without its weight."""
    if isinstance(value, ast.BinOp):
        yield from (*_addends(value.left), *_addends(value.right))
    elif isinstance(value, (ast.Name, ast.Subscript)):
        yield value


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


def _accumulation(statement: ast.stmt, known: Collection[str]) -> Kept | None:
    """What a statement keeps of what is known by its code, in what and how."""
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
    part = _part(value, known) if holder and value is not None else None
    return None if part is None or names.root(part) == holder else Kept(part, names.code(part), holder, kind)


def _holder(node: ast.expr) -> str:
    """What is kept in: a name, an attribute, or an entry of one."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return names.dotted(node)


def _part(value: ast.expr, known: Collection[str]) -> ast.expr | None:
    """The loss in an expression that has its graph as well."""
    if isinstance(value, (ast.Name, ast.Subscript)):
        return value if names.code(value) in known else None
    if isinstance(value, ast.BinOp):
        return _part(value.left, known) or _part(value.right, known)
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _STILL:
        return _part(value.func.value, known)
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
