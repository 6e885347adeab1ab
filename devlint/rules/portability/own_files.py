"""Whether a file that a program loads is its own: saved, trained or copied by it before, or shipped with its code."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Iterator
from functools import lru_cache

from devlint.flow.syntax import names
from devlint.flow.syntax.nodes import parameters
from devlint.rules.code.blocks import around, assigned, method_of, receiver, stores
from devlint.rules.code.device_choice import names_devices
from devlint.source.syntax import walk
from devlint.source.tree import Source

STEPPING = re.compile(r"(?i)optim")
"""What is saved of a training beside its network, by name."""
_WRITING = ("save", "shutil.copy", "shutil.copyfile", "shutil.copy2", "shutil.move")
_TRAINING = ("train", "fit")


def made_here(source: Source, node: ast.AST, training: bool) -> bool:
    """Whether the data is the program's own: from memory, saved or trained in the function, saved from the CPU."""
    if not isinstance(node, ast.Call) or not node.args:
        return False
    if _first_backward(around(source, node)) < node.lineno:
        return True
    file = node.args[0]
    if isinstance(file, ast.Call) and ast.unparse(file.func).endswith("BytesIO"):
        return True
    path, inside = _written(_path_of(file)), _saved(around(source, node))
    folder = _folder(file)
    if folder and inside.get(folder, node.lineno) < node.lineno:
        return True
    if _has_trained(source, node, file) or _saves_from_cpu(source, path, training):
        return True
    if ast.unparse(file).startswith("self.") or _is_fixed(file, around(source, node)):
        # what an object keeps, or the program, is one file, whichever of its methods saves it
        classes = (found for found in walk(source.tree) if isinstance(found, ast.ClassDef))
        holders = (found for found in classes if found.lineno <= node.lineno <= (found.end_lineno or 0))
        return path in _saved(next(holders, None) or around(source, node))
    return inside.get(path, node.lineno) < node.lineno


def _is_fixed(file: ast.expr, function: ast.AST) -> bool:
    """Whether a path is the same in all calls of a method: a text, with what the program has once, as its settings."""
    arguments = getattr(function, "args", None)
    taken = {one.arg for one in parameters(arguments)} if isinstance(arguments, ast.arguments) else set()
    own = taken.union(stores(function)) - {"self"}
    return isinstance(file, (ast.Constant, ast.JoinedStr)) and own.isdisjoint(names.inside(file))


def _has_trained(source: Source, node: ast.Call, file: ast.expr) -> bool:
    """Whether the path is kept by an object that has trained before: ``trainer.fit(); load(trainer.best_path)``."""
    if not isinstance(file, ast.Attribute):
        return False
    calls = (part for part in walk(around(source, node)) if isinstance(part, ast.Call) and part.lineno < node.lineno)
    trained = (receiver(call) for call in calls if method_of(call) in _TRAINING)
    return ast.unparse(file.value) in (ast.unparse(one) for one in trained if one is not None)


def _saves_from_cpu(source: Source, path: str, training: bool) -> bool:
    """Whether a file copies to the CPU all of a kind that it saves, or saves there, or is a script without devices."""
    written = saves(source.tree)
    there = [call for to, call in written if to == path]
    run = _is_script(source) or all(_is_run(source, around(source, call)) for call in there)
    if there and not names_devices(source) and run:
        return True
    alike = [one for _, one in written if bool(STEPPING.search(ast.unparse(one.args[0]))) is training]
    copied = [[_is_copied(source, call) for call in calls] for calls in (there, alike)]
    return any(flags and all(flags) for flags in copied)


def _is_copied(source: Source, save: ast.Call) -> bool:
    """Whether what is saved is on the CPU: it is copied there, or its network was moved there before."""
    if ".cpu()" in ast.unparse(save.args[0]) or _is_on_the_host(save.args[0], around(source, save)):
        return True
    calls = (node for node in walk(around(source, save)) if isinstance(node, ast.Call) and node.lineno < save.lineno)
    moved = (call for call in calls if method_of(call) == "cpu")
    return any(ast.unparse(receiver(node) or save) in map(ast.unparse, _receivers(save.args[0])) for node in moved)


def _is_on_the_host(node: ast.expr, function: ast.AST) -> bool:
    """Whether a name is given what is copied to the CPU, and then nothing but what is made of that."""
    held = assigned(function).get(node.id, []) if isinstance(node, ast.Name) else []
    copied = [".cpu()" in ast.unparse(value) for _, value in held]
    of_itself = [isinstance(node, ast.Name) and node.id in names.inside(value) for _, value in held]
    return any(copied) and all(map(operator.or_, copied, of_itself))


def _receivers(node: object) -> Iterator[ast.AST]:
    """What methods are called of, and attributes are read of, one after the other."""
    while isinstance(node, ast.AST):
        yield node
        node = receiver(node) if isinstance(node, ast.Call) else getattr(node, "value", None)


def _is_script(source: Source) -> bool:
    """Whether a file says what it does as the program."""
    tests = (statement.test for statement in source.tree.body if isinstance(statement, ast.If))
    return any("__name__" in names.inside(test) for test in tests)


def _is_run(source: Source, function: ast.AST) -> bool:
    """Whether a function is the top level of a script, or is called there."""
    run = (statement.value for statement in source.tree.body if isinstance(statement, ast.Expr))
    called = {getattr(call.func, "id", "") for call in run if isinstance(call, ast.Call)}
    return function is source.tree or getattr(function, "name", None) in called


@lru_cache(maxsize=8)
def _first_backward(body: ast.AST) -> float:
    """The first row of a function, or of a script but for its functions, where it trains; else infinity."""
    rows, rest = [math.inf], [*ast.iter_child_nodes(body)]
    while rest:
        node = rest.pop()
        if isinstance(node, ast.Attribute) and node.attr == "backward":
            rows.append(node.lineno)
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            rest += ast.iter_child_nodes(node)
    return min(rows)


@lru_cache(maxsize=8)
def saves(tree: ast.AST) -> list[tuple[str, ast.Call]]:
    """Where a file saves something, each with the path, as a dump: ``torch.save(net.cpu().state_dict(), path)``."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and len(node.args) > 1)
    return [(_written(_path_of(call.args[1])), call) for call in calls if method_of(call) == "save"]


@lru_cache(maxsize=8)
def _saved(body: ast.AST) -> dict[str, int]:
    """What is saved or copied to, as a dump, with the first row where it is."""
    rows: dict[str, int] = {}
    for call in ast.walk(body):
        if isinstance(call, ast.Call) and len(call.args) > 1 and ast.unparse(call.func).endswith(_WRITING):
            path = _path_of(call.args[1])
            for to in filter(None, (_written(path), _folder(path))):
                rows[to] = min(call.lineno, rows.get(to, call.lineno))
    return rows


def _folder(path: ast.expr) -> str:
    """The folder that a path names before the name of a file, as a dump; empty where it names none."""
    if isinstance(path, ast.BinOp) and not isinstance(path.left, ast.Constant):
        return f"folder {ast.dump(path.left)}"
    joined = isinstance(path, ast.Call) and ast.unparse(path.func).endswith("path.join") and path.args[:-1]
    return f"folder {list(map(ast.dump, joined))}" if joined else ""


def lies_beside(source: Source, node: ast.AST) -> bool:
    """Whether a file is found by where the code is: it was saved for all, with the package."""
    file = node.args[0] if isinstance(node, ast.Call) and node.args else None
    held = assigned(around(source, node)).get(file.id, ()) if isinstance(file, ast.Name) else ()
    paths = (ast.unparse(path) for path in (file, *(value for _, value in held)) if path is not None)
    return any("__file__" in path and re.search(r"\.parent\b|dirname\(", path) for path in paths)


def _written(path: ast.expr) -> str:
    """A path as it stands there; where a name is put into a text, the text: ``"{}.pt".format(epoch)``."""
    text = receiver(path) if method_of(path) == "format" else None
    return ast.dump(path if text is None else text)


def _path_of(file: ast.expr) -> ast.expr:
    """The path of a file that is opened in the call."""
    opened = isinstance(file, ast.Call) and ast.unparse(file.func) == "open" and file.args
    return file.args[0] if isinstance(file, ast.Call) and opened else file
