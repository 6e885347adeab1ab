"""Rows: what became of one name of torch, or of one argument of it."""

from __future__ import annotations

import enum

from devlint.immutable import immutable

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


@immutable(frozen=True, slots=True)
class Api:
    """What became of one name of torch.

    ``replacement`` is the full dotted name to use instead (of an argument: its new name), and ``since`` the first torch
    that has it, with the meaning that a fix counts on; ``deprecated`` is the first torch that warns.  ``safe`` says
    that the replacement does the same on every device; ``raises`` that a call of the old name raises without CUDA,
    ``needs`` that one of the replacement raises without an accelerator, ``index`` that it takes indexes and no devices;
    ``hidden`` that torch warns by a ``DeprecationWarning``, which Python shows of the main script alone.

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
    hidden: bool = False
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
