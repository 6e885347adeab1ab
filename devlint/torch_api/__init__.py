"""What became of names of torch, as data: which are deprecated, which have a form for every accelerator.

:mod:`devlint.torch_api.deprecated`, :mod:`devlint.torch_api.others` (of other libraries) and
:mod:`devlint.torch_api.portable` hold the rows, one per name (or per argument of a name).  The interpreter
asks which names are worth a site, the rules what to say of them.  Names are spelled as a user's name resolves:
``torch.cuda.amp.autocast``, ``torch.Tensor.pin_memory``.
"""

from __future__ import annotations

import ast
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
_Table = dict[str, tuple[Api, ...]]
"""Rows by the name that they are about."""
_OF = ("torch.", "apex.", "pytorch_lightning.")
"""How the names begin of which there are rows."""
_ASKED_FOR = ("torch.cuda.", "torch.accelerator.", "torch.cpu.amp.")
"""Below these, every name is worth a site."""


def deprecations(name: str) -> tuple[Api, ...]:
    """The rows on a deprecated name: of the name itself, or of arguments of it."""
    return _tables()[0].get(name, ())


def portable_forms(name: str) -> tuple[Api, ...]:
    """The rows on a name that is bound to one kind of accelerator."""
    return _tables()[1].get(name, ())


def arguments(name: str) -> tuple[Api, ...]:
    """The rows on arguments of ``name``."""
    return tuple(row for row in (*deprecations(name), *portable_forms(name)) if row.argument)


def matters(name: str) -> bool:
    """Whether a rule may have something to say of a mention of ``name``, whatever its arguments."""
    return name.startswith(_ASKED_FOR) or name in _names()[0]


def concerns(name: str, call: ast.Call | None) -> bool:
    """Whether a rule may have something to say of a mention of ``name``, or of the arguments of its call."""
    if not name.startswith(_OF):
        return False
    if matters(name):
        return True
    if call is None or name not in _names()[1]:
        return False
    given, count = {keyword.arg for keyword in call.keywords}, len(call.args)
    rows = arguments(name)
    return any(row.argument in given or (row.position is not None and count > row.position) for row in rows)


@cache
def words() -> frozenset[str]:
    """The last parts of the names that a file mentions where it matters, those with well-known prefixes left out."""
    known = (name for names in _names() for name in names if not name.startswith(("torch.cuda.", "torch.Tensor.")))
    return frozenset(name.rpartition(".")[2] for name in known)


@cache
def _tables() -> tuple[_Table, _Table]:
    """On deprecated names, and on those that are bound to one kind of accelerator."""
    from devlint.torch_api import deprecated, others, portable

    return _by_name((*deprecated.ROWS, *others.ROWS)), _by_name(portable.ROWS)


def _by_name(rows: tuple[Api, ...]) -> _Table:
    table: _Table = {}
    for row in rows:
        table[row.name] = (*table.get(row.name, ()), row)
    return table


@cache
def _names() -> tuple[frozenset[str], frozenset[str]]:
    """The names of which there is something to say by themselves, and those with arguments that matter."""
    rows = [row for table in _tables() for rows in table.values() for row in rows]
    arguments_of = frozenset(row.name for row in rows if row.argument)
    return AVAILABILITY | {row.name for row in rows if not row.argument}, arguments_of
