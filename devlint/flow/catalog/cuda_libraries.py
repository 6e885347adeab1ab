"""Code that is for CUDA by what it imports: a library that runs nowhere else."""

from __future__ import annotations

import ast
from collections.abc import Iterable

_NEED_CUDA = frozenset(
    """cupy flash_attn flash_attn_interface pycuda pynvml tensorrt tensorrt_llm torch_tensorrt transformer_engine
    transformer_engine_torch triton""".split()
)
"""Libraries for the accelerators that `torch.cuda` stands for, by the names that are imported."""


_ALONE = _NEED_CUDA - {"triton"}
"""Those that are written for nothing else: kernels of triton run on other accelerators, too, if the rest does."""


def needs_cuda(nodes: Iterable[ast.AST], alone: bool = False) -> bool:
    """Whether an import is among ``nodes`` without which the code does nothing, and with which it needs CUDA.

    ``alone`` asks for those for which nothing but CUDA will ever do.
    """
    wanted = _ALONE if alone else _NEED_CUDA
    return any(name.partition(".")[0] in wanted for node in nodes for name in _imported(node))


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
