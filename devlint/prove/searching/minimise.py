"""A smaller plan that still shows the same: without what may be left out, with smaller tensors and numbers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from devlint.prove.arguments.values import Instance, Plain, Tensor, Value
from devlint.prove.searching.plan import Plan
from devlint.prove.searching.search import Search

SECONDS = 8.0
MOST_RUNS = 80


def minimised(plan: Plan, search: Search) -> Plan:
    """The smallest plan found in the time that there is, which may be the same."""
    deadline, runs = time.thread_time() + SECONDS, 0
    tried = {plan.script()}
    clearness = search.shows(plan.script(), search.watch.run(plan.script()))
    again = clearness > 0
    while again:
        again = False
        for smaller in _smaller(plan):
            script = smaller.script()
            if script in tried:
                continue
            tried.add(script)
            if runs >= MOST_RUNS or time.thread_time() > deadline:
                return plan
            runs += 1
            if search.shows(script, search.watch.run(script)) >= clearness:
                plan, again = smaller, True
                break
    return plan


def _smaller(plan: Plan) -> Iterator[Plan]:
    for slot, value in plan.slots():
        if value is not None and slot.may_be_left_out:
            yield plan.changed(slot.path, None)
    for slot, value in plan.slots():
        for other in _simpler(value):
            yield plan.changed(slot.path, other)


def _simpler(value: Value | None) -> Iterator[Value]:
    if isinstance(value, Tensor):
        if len(value.shape) > 1:
            yield value.shaped(*value.shape[1:])
        for place, size in enumerate(value.shape):
            for less in (1, 2):
                if less < size and (less > 1 or size == 2):
                    yield value.shaped(*value.shape[:place], less, *value.shape[place + 1 :])
    elif isinstance(value, Plain) and value.expression.isdecimal():
        yield from (Plain(str(less)) for less in (2, 4) if less < int(value.expression))
    elif isinstance(value, Instance) and value.small:
        yield replace(value, small=())
        for number in range(len(value.small)):
            yield replace(value, small=(*value.small[:number], *value.small[number + 1 :]))
