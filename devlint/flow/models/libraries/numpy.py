"""Numbers: what NumPy makes of one number is one number again."""

from __future__ import annotations

from devlint.flow.core.call import Call
from devlint.flow.domain.values import Const, Opaque, Value

_ELEMENTWISE = frozenset(
    f"numpy.{name}"
    for name in """radians degrees deg2rad rad2deg sin cos tan arcsin arccos arctan arctan2 sinh cosh tanh exp exp2
    expm1 log log2 log10 log1p sqrt cbrt square power float_power absolute abs fabs sign floor ceil rint trunc round add
    subtract multiply divide true_divide floor_divide mod reciprocal negative minimum maximum clip hypot float32 float64
    int32 int64""".split()
)


def counts(call: Call, path: str) -> bool:
    """Whether a call makes a number of numbers."""
    values = call.values()
    return path in _ELEMENTWISE and bool(values) and not call.starred and not call.open and all(map(_is_number, values))


def _is_number(value: Value) -> bool:
    if isinstance(value, Const):
        return isinstance(value.value, (int, float))
    return isinstance(value, Opaque) and value.hint == "number"
