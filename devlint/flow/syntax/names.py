"""Names: what an import binds, and the one canonical spelling of torch's many aliases."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterable

_MOVED = {
    "torch.nn.parallel.DataParallel": "torch.nn.DataParallel",
    "torch.nn.parallel.data_parallel.DataParallel": "torch.nn.DataParallel",
    "torch.nn.parallel.data_parallel.data_parallel": "torch.nn.parallel.data_parallel",
    "torch.nn.parallel.distributed.DistributedDataParallel": "torch.nn.parallel.DistributedDataParallel",
    "torch.utils.data.dataloader.DataLoader": "torch.utils.data.DataLoader",
    "torch.utils.data.dataset.Dataset": "torch.utils.data.Dataset",
    "torch.utils.data.DistributedSampler": "torch.utils.data.distributed.DistributedSampler",
    "torch.utils.data.sampler.RandomSampler": "torch.utils.data.RandomSampler",
    "torch.utils.data.sampler.SubsetRandomSampler": "torch.utils.data.SubsetRandomSampler",
    "torch.utils.data.dataset.random_split": "torch.utils.data.random_split",
    "torch.utils.data.dataset.Subset": "torch.utils.data.Subset",
    "torch.utils.data.dataset.TensorDataset": "torch.utils.data.TensorDataset",
    "torch.nn.parameter.Parameter": "torch.nn.Parameter",
    "torch.nn.parameter.Buffer": "torch.nn.Buffer",
    "torch.autograd.variable.Variable": "torch.autograd.Variable",
    "torch.serialization.load": "torch.load",
    "torch.hub.load_url": "torch.hub.load_state_dict_from_url",
    "torch.amp.autocast_mode.autocast": "torch.amp.autocast",
    "torch.autocast": "torch.amp.autocast",
    "torch.tensor.Tensor": "torch.Tensor",
    "lightning.LightningModule": "pytorch_lightning.LightningModule",
    "lightning.pytorch.LightningModule": "pytorch_lightning.LightningModule",
}
_MODULE_FILES = "torch.nn.modules."
_FUNCTIONAL = "torch.functional."


def canonical(path: str) -> str:
    """The spelling under which the rest of devlint knows ``path``."""
    if not path.startswith(("torch.", "lightning.")):
        return path
    if path.startswith(_MODULE_FILES):
        # torch.nn.modules.linear.Linear is torch.nn.Linear
        path = "torch.nn." + path.rpartition(".")[2]
    elif path.startswith(_FUNCTIONAL):
        path = "torch." + path[len(_FUNCTIONAL) :]
    return _MOVED.get(path, path)


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


def are_of_another_library(paths: Iterable[str]) -> bool:
    """Whether what is imported makes tensors, and none of torch's."""
    roots = {path.partition(".")[0] for path in paths}
    return "torch" not in roots and not roots.isdisjoint(_OTHER_LIBRARIES)


_OTHER_LIBRARIES = frozenset({"tensorflow", "jax", "flax", "paddle", "mxnet"})


@functools.lru_cache(maxsize=8192)
def is_class(path: str) -> bool:
    """Whether a name is spelled like that of a class."""
    name = path.rpartition(".")[2].lstrip("_")
    return name[:1].isupper() and not name.isupper()
