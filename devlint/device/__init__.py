"""Where a value lives, as far as it is known: a lattice of devices, and the conditions on which one hangs."""

from devlint.device.conditions import (
    ALWAYS,
    AVAILABLE,
    ITEMS,
    NEVER,
    Condition,
    Conjunction,
    EachItem,
    LoopRound,
    PathTaken,
    Predicate,
    Returned,
    Topic,
    Truth,
    TypePredicate,
    Wanted,
)
from devlint.device.lattice import CPU, IMPLIED_CPU, UNKNOWN, Device, Kind, Role, accelerator, choice, symbol
from devlint.device.spelling import ACCELERATOR_TYPES, parse
from devlint.device.wording import AN_ITEM

__all__ = [
    "ACCELERATOR_TYPES",
    "ALWAYS",
    "AN_ITEM",
    "AVAILABLE",
    "CPU",
    "IMPLIED_CPU",
    "ITEMS",
    "NEVER",
    "UNKNOWN",
    "Condition",
    "Conjunction",
    "Device",
    "EachItem",
    "Kind",
    "LoopRound",
    "PathTaken",
    "Predicate",
    "Returned",
    "Role",
    "Topic",
    "Truth",
    "TypePredicate",
    "Wanted",
    "accelerator",
    "choice",
    "parse",
    "symbol",
]
