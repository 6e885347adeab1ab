"""How a function ends: in which state its caller goes on, and what it is given."""

from __future__ import annotations

from devlint.device import UNKNOWN, Condition, Kind, PathTaken, Returned
from devlint.flow.core.interpreter import Frame
from devlint.flow.domain.join import join
from devlint.flow.domain.state import State, rejoin
from devlint.flow.domain.values import Tensor, Value
from devlint.immutable import replace


def after(frame: Frame) -> State:
    """The state in which a function's caller goes on."""
    states = [*frame.exits] if frame.state.dead else [*frame.exits, frame.state]
    if not states:
        return frame.state
    result = states[0]
    for position, state in enumerate(states[1:]):
        result = rejoin(result.copy(), state, PathTaken("exit", frame.name, position))
    return result


def returned(frame: Frame) -> Value:
    """What a call of the function gives: which of its results hangs on the conditions that part the ways out."""
    result, facts = frame.returns[-1], frame.exits[-1].facts
    for position in range(len(frame.returns) - 2, -1, -1):
        value, left = frame.returns[position], frame.exits[position].facts
        guard = next((key for key, truth in left.items() if facts.get(key) is (not truth)), None)
        if _on_an_argument(value) or _on_an_argument(result):
            # what an early exit returns may be for a case that never comes here
            result = join(value, result, Returned(position, frame.name))
        elif guard is not None:
            result = join(value, result, guard) if left[guard] else join(result, value, guard)
        else:
            result = _either(value, result, Returned(position, frame.name))
        facts = {key: truth for key, truth in facts.items() if left.get(key) is truth}
    return result


def _either(first: Value, second: Value, path: Condition) -> Value:
    """One of two results, and nothing says which."""
    joined = join(first, second, path)
    if isinstance(joined, Tensor) and joined.device.guard is path:
        return replace(joined, device=UNKNOWN, factory="", factory_node=None, story=())
    return joined


def _on_an_argument(value: Value) -> bool:
    return isinstance(value, Tensor) and any(leaf.kind is Kind.SYMBOL for leaf in value.device.leaves())
