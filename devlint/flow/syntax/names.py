"""Names: what an import binds, and the one canonical spelling of torch's many aliases."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable

from devlint.flow.catalog.libraries import canonical
from devlint.source.syntax import walk


def modules(statement: ast.AST) -> list[str]:
    """The modules of other packages that an import names."""
    if isinstance(statement, ast.Import):
        return [alias.name for alias in statement.names]
    return [statement.module or ""] if isinstance(statement, ast.ImportFrom) and not statement.level else []


def imported(statement: ast.Import | ast.ImportFrom) -> dict[str, str]:
    """The names that an import binds, each with the dotted name it stands for; a star binds nothing."""
    if isinstance(statement, ast.Import):
        return {
            (alias.asname or alias.name.partition(".")[0]): (
                alias.name if alias.asname else alias.name.partition(".")[0]
            )
            for alias in statement.names
        }
    base = "." * statement.level + (statement.module or "")
    joint = "" if base.endswith(".") or not base else "."
    return {
        alias.asname or alias.name: canonical(f"{base}{joint}{alias.name}")
        for alias in statement.names
        if alias.name != "*"
    }


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


def code(node: ast.AST) -> str:
    """The code of a node in one form: ``ast.unparse``, in a tenth of its time for what is plain."""
    return _plain(node) or ast.unparse(node)


def _plain(node: ast.AST) -> str:
    """The code of what needs no parentheses; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    render = _PLAIN.get(type(node))
    return render(node) if render is not None else ""


def _tight(node: ast.expr) -> str:
    """The same of what has a part taken out of it, or is called."""
    return "" if isinstance(node, (ast.Constant, ast.BinOp, ast.UnaryOp)) else _plain(node)


def _attribute(node: ast.Attribute) -> str:
    value = _tight(node.value)
    return value and f"{value}.{node.attr}"


def _constant(node: ast.Constant) -> str:
    if node.value is ...:
        return "..."
    if node.kind is None and (node.value is None or type(node.value) in (int, bool, str)):
        return repr(node.value)
    return ""


def _operation(node: ast.BinOp) -> str:
    operator = OPERATORS.get(type(node.op))
    if operator is None or isinstance(node.left, ast.BinOp) or isinstance(node.right, ast.BinOp):
        return ""
    left, right = _plain(node.left), _plain(node.right)
    return left and right and f"{left} {operator} {right}"


def _negative(node: ast.UnaryOp) -> str:
    value = "" if isinstance(node.operand, ast.BinOp) or not isinstance(node.op, ast.USub) else _plain(node.operand)
    return value and f"-{value}"


def _slice(node: ast.Slice) -> str:
    lower = "" if node.lower is None else _plain(node.lower)
    upper = "" if node.upper is None else _plain(node.upper)
    whole = (lower or node.lower is None) and (upper or node.upper is None) and node.step is None
    return f"{lower}:{upper}" if whole else ""


def _subscript(node: ast.Subscript) -> str:
    value = _tight(node.value)
    if not isinstance(node.slice, ast.Tuple):
        inside = _plain(node.slice)
    else:
        inside = _row(node.slice.elts) if len(node.slice.elts) > 1 else ""
    return value and inside and f"{value}[{inside}]"


def _call(node: ast.Call) -> str:
    function = _tight(node.func)
    if not node.args and not node.keywords:
        return function and f"{function}()"
    named = [(f"{keyword.arg}=" if keyword.arg else "**", _plain(keyword.value)) for keyword in node.keywords]
    parts = [*map(_plain, node.args), *(value and f"{name}{value}" for name, value in named)]
    return f"{function}({', '.join(parts)})" if function and all(parts) else ""


def _row(nodes: list[ast.expr]) -> str:
    parts = [_plain(part) for part in nodes]
    return ", ".join(parts) if all(parts) else ""


OPERATORS: dict[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.MatMult: "@",
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
"""The operators that bind less tightly than a minus sign."""
_PLAIN: dict[type, Callable[..., str]] = {
    ast.Attribute: _attribute,
    ast.BinOp: _operation,
    ast.Call: _call,
    ast.Constant: _constant,
    ast.Slice: _slice,
    ast.Subscript: _subscript,
    ast.UnaryOp: _negative,
}


def spelled(node: ast.AST) -> str:
    """The code of a node on one line, short enough for a message."""
    try:
        text = code(node)
    except (ValueError, RecursionError):
        return "..."
    return text if len(text) <= 60 else f"{text[:57]}..."


@functools.lru_cache(maxsize=8192)
def is_class(path: str) -> bool:
    """Whether a name is spelled like that of a class."""
    name = path.rpartition(".")[2].lstrip("_")
    return name[:1].isupper() and not name.isupper()
