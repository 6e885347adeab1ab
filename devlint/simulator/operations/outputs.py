"""`out=` of functions that are made of others: what is given is written, as on every device.

For tensors of a subclass some of them make a new result and forget the tensor that was given, as
``linalg.matrix_rank`` does, since it may not be written where transforms such as `vmap` are at work.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from devlint.simulator import plans, registration

_COMPOSITE = "CompositeImplicitAutograd"
_key: Any = getattr(torch._C.DispatchKey, _COMPOSITE)


def _written(op: Any, args: Any, kwargs: Any) -> Any:
    """Run a function of others, and see that its result is in the tensors that were given for it."""
    result = op._op_dk(_key, *args, **kwargs)
    made = [result] if isinstance(result, torch.Tensor) else list(result)
    given = [args[at] if at < len(args) else kwargs[name] for at, name in plans.of(op).returned]
    for tensor, target in zip(made, given, strict=True):
        if tensor is not target:
            target.resize_(tensor.shape).copy_(tensor)
    return given[0] if isinstance(result, torch.Tensor) else tuple(given)


def composite() -> Iterator[str]:
    """The names, with their overloads, of all functions of others that take `out`."""
    for qualified in torch._C._dispatch_get_all_op_names():
        namespace, _, name = qualified.partition("::")
        if namespace == "aten" and torch._C._dispatch_has_kernel_for_dispatch_key(qualified, _COMPOSITE):
            op = registration.operator(name)
            if op is not None and plans.of(op).returned and any(each.is_out for each in op._schema.arguments):
                yield name


def install() -> None:
    """Register the handler."""
    for name in composite():
        registration.handle(name, _written, "AutogradPrivateUse1")
