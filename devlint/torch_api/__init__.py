"""What became of names of torch, as data: which are deprecated, which have a form for every accelerator.

:mod:`devlint.torch_api.deprecated` and :mod:`devlint.torch_api.portable` hold the rows, one per name (or per argument
of a name).  The interpreter asks which names are worth a site, the rules what to say of them.  Names are spelled as a
user's name resolves: ``torch.cuda.amp.autocast``, ``torch.Tensor.pin_memory``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache

from devlint.torch_api.rows import Api

AVAILABILITY = frozenset(
    f"torch.{name}"
    for name in """cuda.is_available xpu.is_available mps.is_available accelerator.is_available mtia.is_available
    hpu.is_available npu.is_available backends.mps.is_available backends.mps.is_built backends.cuda.is_built
    backends.cudnn.is_available cuda.is_bf16_supported cuda.is_initialized distributed.is_available
    distributed.is_initialized distributed.is_nccl_available distributed.is_mpi_available
    distributed.is_gloo_available""".split()
)
"""The questions of torch that are answered by a call; the function itself is always true."""
_ASKED_FOR = ("torch.cuda.", "torch.accelerator.", "torch.cpu.amp.")
"""Below these, every name is worth a site."""


@cache
def deprecations(name: str) -> tuple[Api, ...]:
    """The rows on a deprecated name: of the name itself, or of arguments of it."""
    return _deprecated().get(name, ())


@cache
def portable_forms(name: str) -> tuple[Api, ...]:
    """The rows on a name that is bound to one kind of accelerator."""
    return _portable().get(name, ())


def matters(name: str) -> bool:
    """Whether a rule may have something to say of a mention of ``name``, whatever its arguments."""
    return name.startswith(_ASKED_FOR) or name in _names()


def concerns(name: str, call: ast.Call | None) -> bool:
    """Whether a rule may have something to say of a mention of ``name``, or of the arguments of its call."""
    if not name.startswith("torch."):
        return False
    if matters(name):
        return True
    rows = () if call is None else arguments(name)
    if call is None or not rows:
        return False
    given, count = {keyword.arg for keyword in call.keywords}, len(call.args)
    return any(row.argument in given or (row.position is not None and count > row.position) for row in rows)


def arguments(name: str) -> tuple[Api, ...]:
    """The rows on arguments of ``name``, where it matters for nothing else."""
    return _arguments().get(name, ())


@cache
def words() -> frozenset[str]:
    """The last parts of the names that a file mentions where it matters, those with well-known prefixes left out."""
    return frozenset(
        name.rpartition(".")[2]
        for name in (*_names(), *_arguments())
        if not name.startswith(("torch.cuda.", "torch.Tensor."))
    )


@cache
def _deprecated() -> dict[str, tuple[Api, ...]]:
    from devlint.torch_api.deprecated import ROWS

    return _by_name(ROWS)


@cache
def _portable() -> dict[str, tuple[Api, ...]]:
    from devlint.torch_api.portable import ROWS

    return _by_name(ROWS)


def _rows() -> Iterator[Api]:
    for rows in (*_deprecated().values(), *_portable().values()):
        yield from rows


@cache
def _names() -> frozenset[str]:
    return AVAILABILITY | {row.name for row in _rows() if not row.argument}


@cache
def _arguments() -> dict[str, tuple[Api, ...]]:
    return _by_name(row for row in _rows() if row.argument)


def _by_name(rows: Iterable[Api]) -> dict[str, tuple[Api, ...]]:
    found: dict[str, tuple[Api, ...]] = {}
    for row in rows:
        found[row.name] = (*found.get(row.name, ()), row)
    return found
