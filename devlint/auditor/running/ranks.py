"""Which of several processes of a distributed run this one is, as the launchers tell it."""

from __future__ import annotations

import hashlib
import os
import sys
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rank:
    """A process of a distributed run; on its machine, it is number ``local`` of ``local_size``."""

    number: int
    local: int
    size: int
    local_size: int
    node: int
    key: str
    """The same in all processes of the run on this machine, and in no others."""


def find() -> Rank | None:
    """The rank that torchrun, accelerate or deepspeed gave to this process, ``None`` if it is no such process."""
    number, size = _number("RANK"), _number("WORLD_SIZE")
    if number is None or size is None or size < 2:
        return None
    local = _number("LOCAL_RANK")
    local_size = _number("LOCAL_WORLD_SIZE") or (size if local == number else None)
    if local is None or local_size is None:
        # Not told which processes share the machine: each speaks for itself.
        return Rank(number, 0, size, 1, number, f"{_key()}-{number}")
    node = _number("GROUP_RANK")
    return Rank(number, local, size, local_size, number // local_size if node is None else node, _key())


def of_group() -> tuple[int, int] | None:
    """This process's number in torch's process group and the size of that, if it is in one."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return distributed.get_rank(), distributed.get_world_size()


def _key() -> str:
    # "none" is the name of every run that was not given one, and the port is often the same; the launcher's process
    # is another each time.
    names = ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT")
    words = [os.environ.get(name, "") for name in names]
    words.append(str(os.getppid()))
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:16]


def _number(name: str) -> int | None:
    text = os.environ.get(name, "")
    return int(text) if text.isascii() and text.isdigit() else None
