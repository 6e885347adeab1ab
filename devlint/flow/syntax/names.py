"""Names: what an import binds, and the one canonical spelling of torch's many aliases."""

from __future__ import annotations

import ast
import functools

from devlint.flow.catalog.libraries import canonical
from devlint.source.syntax import walk


def modules(statement: ast.AST, beside: bool = False) -> list[str]:
    """The modules of other packages that an import names, and those ``beside`` the file: ``from . import name``."""
    if isinstance(statement, ast.Import):
        return [alias.name for alias in statement.names]
    if not isinstance(statement, ast.ImportFrom) or (statement.level and not beside):
        return []
    return [f".{alias.name}" for alias in statement.names] if statement.module is None else [statement.module]


def imported(statement: ast.Import | ast.ImportFrom) -> dict[str, str]:
    """The names that an import binds, each with the dotted name it stands for; a star binds nothing."""
    if isinstance(statement, ast.Import):
        return {
            (alias.asname or alias.name.partition(".")[0]): (
                alias.name if alias.asname else alias.name.partition(".")[0]
            )
            for alias in statement.names
        }
    base = source(statement)
    return {
        alias.asname or alias.name: canonical(joint(base, alias.name)) for alias in statement.names if alias.name != "*"
    }


def source(statement: ast.ImportFrom) -> str:
    """The dotted name of the module from which something is imported, as it is spelled."""
    return "." * statement.level + (statement.module or "")


def joint(module: str, name: str) -> str:
    """The dotted name of something in a module, which may be relative."""
    return f"{module}{name}" if module.endswith(".") else f"{module}.{name}"


def dotted(node: ast.expr) -> str:
    """The dotted text of a chain of names such as ``self.args.device``, empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    path = ""
    while isinstance(node, ast.Attribute):
        path = f".{node.attr}{path}"
        node = node.value
    return f"{node.id}{path}" if isinstance(node, ast.Name) else ""


def called(node: ast.AST) -> str:
    """The dotted text of what a call calls, empty for anything else."""
    return dotted(node.func) if isinstance(node, ast.Call) else ""


def method(node: ast.AST) -> str:
    """The name of the method that a call calls, of whatever it is one; empty for anything else."""
    return node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""


def of_super(node: ast.AST) -> str:
    """The method of the base that a call calls, as in ``super().forward(x)``; empty for anything else."""
    inherited = (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and called(node.func.value) == "super"
    )
    return method(node) if inherited else ""


def root(node: ast.AST) -> str:
    """The name with which a chain such as `batch["x"].float().to(device)` begins, empty where it is none."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def decorators(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> tuple[str, ...]:
    """The dotted texts of the decorators of a definition, calls included; ``?`` for any other."""
    return tuple(called(item) or dotted(item) or "?" for item in node.decorator_list)


def of_self(node: ast.AST) -> str:
    """The name of an attribute of ``self``, empty for anything else."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        return node.attr
    return ""


def is_name(node: ast.AST | None, name: str) -> bool:
    """Whether a node is just a name."""
    return isinstance(node, ast.Name) and node.id == name


def inside(*roots: ast.AST) -> set[str]:
    """The names anywhere in some nodes."""
    return {node.id for root in roots for node in walk(root) if isinstance(node, ast.Name)}


def chains(*roots: ast.AST) -> set[str]:
    """The dotted texts of the names and attributes anywhere in some nodes."""
    return {dotted(node) for root in roots for node in walk(root) if isinstance(node, (ast.Name, ast.Attribute))}


def code(node: ast.AST) -> str:
    """The code of a node in one form: ``ast.unparse``, in a tenth of its time for what is plain."""
    return _plain(node) or ast.unparse(node)


def abbreviated(node: ast.AST) -> str:
    """An expression without its arguments, ``torch.full(...)``; empty if it is more than names, calls and items."""
    return _plain(node, brief=True)


def _plain(node: ast.AST, brief: bool = False) -> str:
    """The code of names, literals, calls and items, without arguments if ``brief``; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        inner, rest = node.value, f".{node.attr}"
    elif isinstance(node, ast.Call):
        keywords = [(keyword.arg, _plain(keyword.value)) for keyword in node.keywords if not brief]
        given = [*map(_plain, node.args), *(name and value and f"{name}={value}" for name, value in keywords)]
        inner, rest = node.func, f"({', '.join(map(str, given))})" if all(given) else ""
        if brief:
            rest = "(...)" if node.args or node.keywords else "()"
    elif isinstance(node, ast.Subscript):
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        parts = ["..."] if brief else [_plain(item) for item in items]
        # of one item or none, a tuple needs a comma or brackets
        index = ", ".join(parts) if all(parts) and (len(parts) > 1 or brief or items == [node.slice]) else ""
        inner, rest = node.value, index and f"[{index}]"
    elif isinstance(node, ast.Constant) and node.kind is None and not brief:
        return repr(node.value) if node.value is None or type(node.value) in (int, bool, str) else ""
    else:
        return ""
    value = "" if isinstance(inner, ast.Constant) else _plain(inner, brief)
    return value and rest and f"{value}{rest}"


def spelled(node: ast.AST) -> str:
    """The code of a node on one line, short enough for a message."""
    try:
        text = code(node)
    except (ValueError, RecursionError):
        return "..."
    return text if len(text) <= 60 else abbreviated(node) or f"{text[:57]}..."


@functools.lru_cache(maxsize=8192)
def is_class(path: str) -> bool:
    """Whether a name is spelled like that of a class."""
    name = path.rpartition(".")[2].lstrip("_")
    return name[:1].isupper() and not name.isupper()
