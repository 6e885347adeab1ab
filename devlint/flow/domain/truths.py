"""Truth values made of others: of two that both hold, and of one that a name has on either path."""

from __future__ import annotations

from collections.abc import Iterable

from devlint.device import ALWAYS, AVAILABLE, NEVER, Condition, Conjunction, Predicate, Truth, Wanted
from devlint.flow.domain.values import Const, Flag, Value

_ASKED = (type(AVAILABLE), Conjunction, Predicate, Wanted)
"""What a program asks, and may ask again."""


def accelerates(flag: Flag) -> bool:
    """Whether the condition, where it holds, says that an accelerator is there."""
    return (flag.accelerated > 0 and flag.positive) or (flag.accelerated < 0 and not flag.positive)


def conjunction(parts: Iterable[Flag], every: bool = False) -> Flag:
    """All of them hold; ``every`` says that an accelerator is there wherever one of them fails."""
    different = {(part.condition, part.positive): part for part in parts}
    if (NEVER, True) in different or (ALWAYS, False) in different:
        return Flag(NEVER)
    different.pop((ALWAYS, True), None)
    different.pop((NEVER, False), None)
    kept = tuple(different.values())
    if any((part.condition, not part.positive) in different for part in kept):
        return Flag(NEVER)
    if len(kept) < 2:
        return kept[0] if kept else Flag(ALWAYS)
    accelerated = -1 if every else 1 if any(map(accelerates, kept)) else 0
    told = [part.by_name for part in kept if every or accelerates(part)]
    return Flag(Conjunction(tuple(different)), True, accelerated, kept, bool(told) and all(told))


def either(first: Value, second: Value, guard: Condition) -> Flag | None:
    """What a name is after a branch that gives it a condition on one path, and ``True`` or ``False`` on the other."""
    for one, two, holds in ((first, second, True), (second, first, False)):
        value = _literal(two)
        if isinstance(one, Flag) and _literal(one) is None and value is not None and isinstance(guard, _ASKED):
            whole = conjunction((Flag(guard, holds), one.negated() if value else one))
            return whole.negated() if value else whole
    return None


def _literal(value: Value) -> bool | None:
    """``True`` or ``False``, if it is known to be that."""
    if isinstance(value, Flag) and isinstance(value.condition, Truth):
        return value.condition.value is value.positive
    return value.value if isinstance(value, Const) and isinstance(value.value, bool) else None
