"""How a device is chosen for whatever machine the code runs on, with the torch that the project allows."""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from devlint.finding import OF_RULE
from devlint.rules.base import Rule
from devlint.rules.code.blocks import method_of
from devlint.sites.base import Scope
from devlint.source.syntax import walk
from devlint.source.tree import Source

_ASKS = re.compile(r"\bis_available\(|\baccelerator\.(?:current|is_)|\.is_built\(")
_KERNELS = re.compile(r"\.cu[\"']|\bCUDAExtension\(")
"""The source of a kernel for CUDA, or what builds it."""
_OF_TENSOR = re.compile(r"(?!self\.)\w+\.device")
"""The device of an argument."""
_PLACES = re.compile(r"cuda|device|accelerat|\bmps\b|\bxpu\b|\.to\(|Trainer\b", re.IGNORECASE)
"""How code says that something may go elsewhere."""
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


def design(source: Source, code: str, device: str = "") -> str:
    """The design to which a place that is for CUDA alone belongs, empty where it stands for itself.

    It does where the rest of the file asks which accelerator there is, and a ``device`` is at hand instead.
    """
    return "" if device and _ASKS.search(source.text) else OF_RULE.format(code)


def is_for_cuda(source: Source) -> bool:
    """Whether a file is for CUDA alone: it never asks which accelerator there is, or stops where CUDA is missing."""
    return not _ASKS.search(source.text) or _builds_kernels(source) or _insists_on_cuda(source.tree)


def names_devices(source: Source) -> bool:
    """Whether a file says that something may go elsewhere than to the CPU."""
    return _PLACES.search(source.text) is not None


def has_chosen_cuda(source: Source, scope: Scope) -> bool:
    """Whether code is of no use without CUDA, whatever it calls its device: it imports, or builds, kernels for it."""
    return scope.dedicated or _builds_kernels(source)


def gains_little(source: Source, scope: Scope, device: str, better: bool = False) -> bool:
    """Whether naming a ``device`` in the place of CUDA opens nothing: there is none, or all around it needs CUDA.

    A device that somebody has chosen says more than that of an argument, which was moved to CUDA as everything in such
    a file is; unless the file names it elsewhere, or the code is ``better`` for it anyway.
    """
    mere = not better and _OF_TENSOR.fullmatch(device) is not None and is_for_cuda(source)
    return not device or (mere and device not in _named(source.tree)) or has_chosen_cuda(source, scope)


@lru_cache(maxsize=8)
def _named(tree: ast.AST) -> frozenset[str]:
    """The devices at which a file puts something, as it spells them: in ``.to(x.device)`` and ``device=x.device``."""
    calls = [node for node in walk(tree) if isinstance(node, ast.Call)]
    moved = (call.args[0] for call in calls if call.args and method_of(call) == "to")
    told = (keyword.value for call in calls for keyword in call.keywords if keyword.arg == "device")
    return frozenset(map(ast.unparse, (*moved, *told)))


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
