"""Code that is for CUDA by what it imports: a library that runs nowhere else."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

_NEED_CUDA = frozenset(
    """cupy flash_attn flash_attn_interface pycuda pynvml tensorrt tensorrt_llm torch_tensorrt transformer_engine
    transformer_engine_torch triton""".split()
)
"""Libraries for the accelerators that `torch.cuda` stands for, by the names that are imported."""
_PARTS = ("cupy", "flash_attn", "pycuda", "pynvml", "tensorrt", "transformer_engine", "triton")
"""Each of them has one of these in it, and a text is searched for those much faster."""
_SPOKEN_OF = re.compile(rf"^\s*(?:import|from)\s+(?:{'|'.join(sorted(_NEED_CUDA))})\b", re.MULTILINE)


def speaks(text: str) -> bool:
    """Whether a file imports such a library anywhere."""
    return any(word in text for word in _PARTS) and _SPOKEN_OF.search(text) is not None


def needs_cuda(nodes: Iterable[ast.AST]) -> bool:
    """Whether an import is among ``nodes`` without which the code does nothing, and with which it needs CUDA."""
    return any(name.partition(".")[0] in _NEED_CUDA for node in nodes for name in _imported(node))


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
