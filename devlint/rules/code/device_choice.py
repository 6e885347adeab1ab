"""How a device is chosen for whatever machine the code runs on, with the torch that the project allows."""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from devlint.rules.base import Rule
from devlint.rules.code.blocks import around, assigned
from devlint.rules.code.edits import in_test
from devlint.sites.base import Scope
from devlint.source.syntax import walk
from devlint.source.tree import Source

_ASKS = re.compile(r"\bis_available\(|\baccelerator\.(?:current|is_)|\.is_built\(")
_KERNELS = re.compile(r"\.cu[\"']|\bCUDAExtension\(")
"""The source of a kernel for CUDA, or what builds it."""
_PLACES = re.compile(r"(?i:cuda|device|accelerat|\bmps\b|\bxpu\b|\.to\()|Trainer\b")
"""How code says that something may go elsewhere."""
_HIDDEN = re.compile(r"(?m)^(?:os\.)?environ\[[\"']CUDA_VISIBLE_DEVICES[\"']\]\s*=\s*[\"'](?:-1)?[\"']")
"""A program that takes all GPUs from itself, whatever else it does."""
_STOPS = ("exit", "_exit", "quit", "skip")
_ANY = 'torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")'
_SINCE = (2, 7)
"""The torch in which it can be asked for an accelerator that works."""
_CUDA = '"cuda" if torch.cuda.is_available() else "cpu"'


def knows_others(rule: Rule) -> bool:
    """Whether the choice takes other accelerators than CUDA, too."""
    return rule.can_name(_SINCE)


def device_choice(rule: Rule) -> str:
    """The expression that chooses a device: any accelerator where the project's torch knows which there is, or CUDA."""
    return _ANY if knows_others(rule) else f"torch.device({_CUDA})"


def since(rule: Rule) -> str:
    """From which torch on the choice works, in brackets, where the project does not say which it needs."""
    return "" if rule.target_torch is not None else f" (torch {_SINCE[0]}.{_SINCE[1]})"


def is_for_cuda(source: Source) -> bool:
    """Whether a file is for CUDA alone: it never asks which accelerator there is, or stops where CUDA is missing."""
    return not _ASKS.search(source.text) or _builds_kernels(source) or _insists_on_cuda(source.tree)


def names_devices(source: Source) -> bool:
    """Whether a file says that something may go elsewhere than to the CPU."""
    return says_where(source.text)


def says_where(text: str) -> bool:
    """Whether a text says so."""
    return _PLACES.search(text) is not None


def hides_gpus(source: Source) -> bool:
    """Whether a program runs on the CPU alone, since it hides all GPUs from itself."""
    return _HIDDEN.search(source.text) is not None


def has_chosen_cuda(source: Source, scope: Scope) -> bool:
    """Whether code is of no use without CUDA, whatever it calls its device: it imports, or builds, kernels for it."""
    return scope.dedicated or _builds_kernels(source)


def gains_little(source: Source, node: ast.AST, scope: Scope, device: str) -> bool:
    """Whether naming a ``device`` in the place of CUDA opens nothing.

    Nothing in the file shows that it may be another one, what is around it needs CUDA, or it is for CUDA alone, or for
    tests, anyway.
    """
    needed = scope.required or scope.bound or has_chosen_cuda(source, scope) or _insists_on_cuda(source.tree)
    return needed or in_test(source, scope) or not _is_chosen(source, node, device)


def _is_chosen(source: Source, node: ast.AST, device: str) -> bool:
    """Whether the file shows a device to be what the machine has: ``"cuda" if cuda.is_available() else "cpu"``."""
    held = assigned(around(source, node)).get(device) or assigned(source.tree).get(device) or ()
    return any(_ASKS.search(ast.unparse(value)) is not None for _, value in held)


def chooses_cuda_alone(source: Source, node: ast.AST, device: str) -> bool:
    """Whether the file shows a device to be that of CUDA or the CPU, and no other one."""
    held = assigned(around(source, node)).get(device) or assigned(source.tree).get(device) or ()
    texts = [ast.unparse(value) for _, value in held]
    return bool(texts) and all(_CUDA in text or _CUDA.replace('"', "'") in text for text in texts)


def _builds_kernels(source: Source) -> bool:
    """Whether a file builds kernels for CUDA, without which it is of no use."""
    return "cpp_extension" in source.text and _KERNELS.search(source.text) is not None


@lru_cache(maxsize=8)
def _insists_on_cuda(tree: ast.AST) -> bool:
    """Whether a file stops by itself where CUDA is not available: it has chosen."""
    return any(map(_stops_without_cuda, walk(tree)))


def _stops_without_cuda(node: ast.AST) -> bool:
    if not isinstance(node, (ast.Assert, ast.If)):
        return False
    wanted, asked = "torch.cuda.is_available()", ast.unparse(node.test)
    if isinstance(node, ast.Assert) or asked not in (wanted, f"not {wanted}"):
        return isinstance(node, ast.Assert) and asked == wanted
    for last in (node.orelse if asked == wanted else node.body)[-1:]:
        call = last.value if isinstance(last, ast.Expr) else None
        stops = isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] in _STOPS
        return stops or isinstance(last, ast.Raise)
    return False
