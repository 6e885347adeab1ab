"""What became of names of torch, as data: which are deprecated, which have a form for every accelerator.

:mod:`devlint.torch_api.deprecated` and :mod:`devlint.torch_api.portable` hold the rows, one per name (or per argument
of a name).  The interpreter asks which names are worth a site, the rules what to say of them.  Names are spelled as a
user's name resolves: ``torch.cuda.amp.autocast``, ``torch.Tensor.pin_memory``.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

Version = tuple[int, int]


class Kind(enum.Enum):
    """What has to be done to the old name, or to its argument."""

    RENAMED = "the replacement takes the same arguments"
    BOUND = "the replacement takes the same arguments and says for which device: in `prepend`, or in `keyword`"
    REWRITTEN = "the replacement takes other arguments"
    EXPRESSION = "the replacement, as it is written, stands for the old name"
    ATTRIBUTE = "the attribute has another name"
    DROPPED = "the argument does nothing and is left out"
    ARGUMENT = "the argument has another name"
    NOTHING = "there is no equivalent, or one that only a person can write"


class Topic(enum.Enum):
    """What a name is about; each rule speaks of one topic."""

    AMP = "mixed precision for one kind of device"
    TENSOR_TYPE = "tensors told apart by types instead of dtypes and devices"
    DEVICE_API = "other functions and arguments that have to do with devices"
    PORTABILITY = "names bound to one kind of accelerator"


@dataclass(frozen=True, slots=True)
class Api:
    """What became of one name of torch.

    ``replacement`` is the full dotted name to use instead (of an argument: its new name), and ``since`` the first torch
    that has it, with the meaning that a fix counts on; ``deprecated`` is the first torch that warns.  ``safe`` says
    that the replacement does the same on every device; ``raises`` that a call of the old name raises without CUDA,
    ``needs`` that one of the replacement raises without an accelerator, ``index`` that it takes indexes and no devices.

    ``argument`` is the keyword that is meant, where it is not the function itself; ``position`` where it stands among
    positional arguments, ``only`` the only literal values for which the row holds, and ``value`` what the new argument
    gets instead of ``True``.

    ``prepend`` is what the replacement takes first, ``keyword`` a keyword argument and its value that it takes besides,
    ``parameters`` are the positional parameters of the old name.  ``note`` completes the sentence "NAME is deprecated:
    ...", or says what to do; ``reference`` is where torch says so.
    """

    name: str
    kind: Kind
    replacement: str = ""
    since: Version = (1, 0)
    topic: Topic = Topic.DEVICE_API
    deprecated: Version | None = None
    safe: bool = False
    raises: bool = False
    needs: bool = False
    index: bool = False
    argument: str = ""
    position: int | None = None
    only: tuple[object, ...] = ()
    value: str = ""
    prepend: str = ""
    keyword: tuple[str, str] | None = None
    parameters: tuple[str, ...] = ()
    note: str = ""
    reference: str = ""

    def offered(self, target: Version | None) -> bool:
        """Whether the oldest torch that the code is to run on has the replacement.

        Without a target the newest torch is meant: a deprecation concerns those who upgrade.
        """
        return target is None or self.since <= target


PROFILED_EVENT = "torch.autograd.profiler_util.FunctionEvent"
"""The class whose attributes are known by their names alone, in files that speak of profiles."""
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


@cache
def _names() -> frozenset[str]:
    rows = [row for table in (_deprecated(), _portable()) for known in table.values() for row in known]
    return AVAILABILITY | {row.name for row in rows if not row.argument}


@cache
def _arguments() -> dict[str, tuple[Api, ...]]:
    rows = [row for table in (_deprecated(), _portable()) for known in table.values() for row in known]
    return _by_name(row for row in rows if row.argument)


def _by_name(rows: Iterable[Api]) -> dict[str, tuple[Api, ...]]:
    found: dict[str, tuple[Api, ...]] = {}
    for row in rows:
        found[row.name] = (*found.get(row.name, ()), row)
    return found
