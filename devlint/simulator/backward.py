"""Autograd on virtual devices: what its engine in C++ expects of a device guard and a guard from Python cannot give."""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Sequence
from typing import Any

import torch

from devlint.simulator import devices, errors
from devlint.simulator.tensor import SimulatedTensor

_lost: list[BaseException] = []
"""Exceptions of a backward pass that are on their way through the engine."""


_NOTHING = (None,)
_TYPE = re.compile(f"\\b{devices.NAME}([A-Z][A-Za-z0-9]+)Type")
"""What the engine calls a type of tensors of the simulated device: ``cudaFloatType``."""


def stash_pending_error() -> None:
    """Put aside the exception that is being raised in C++ right now, if there is one.

    While an exception from Python unwinds the engine, the engine asks the device guard for its type, in a destructor
    that must not fail; but a call into Python with an exception pending fails, and the process would be aborted.
    """
    try:
        # CPython makes what is pending the cause of this call's failure.  It checks only calls from C, as here by map.
        next(map(operator.not_, _NOTHING))
    except SystemError as error:
        if error.__cause__ is None:
            raise
        _lost.append(error.__cause__)


def install() -> None:
    """Raise what was put aside where the pass was started; run it in one thread where there are several devices.

    Autograd starts its device threads by the number of devices of a guard, and a guard from Python always says one.
    """
    original = torch.autograd.graph._engine_run_backward

    @functools.wraps(original)
    def run(*args: Any, **kwargs: Any) -> Any:
        _check_gradients(*args[:2])
        try:
            if devices.count() == 1:
                return original(*args, **kwargs)
            with torch.autograd.set_multithreading_enabled(False):
                return original(*args, **kwargs)
        except SystemError:
            if not _lost:
                raise
            error = _lost.pop()
            _lost.clear()
        except RuntimeError as raised:
            _name_as_cuda(raised)
            raise
        _name_as_cuda(error)
        raise error

    modules: tuple[Any, ...] = (torch.autograd.graph, torch.autograd)
    for module in modules:
        module._engine_run_backward = run


def _name_as_cuda(error: BaseException) -> None:
    """Call the tensors in an error of the engine as it calls those of CUDA."""
    if isinstance(error, RuntimeError) and error.args and devices.NAME in str(error.args[0]):
        error.args = (_TYPE.sub(r"torch.cuda.\1Tensor", str(error.args[0])), *error.args[1:])


def _check_gradients(tensors: Sequence[Any], gradients: Sequence[Any]) -> None:
    """What the engine checks of the gradients it is given, except where tensors are of a subclass."""
    for position, (tensor, gradient) in enumerate(zip(tensors, gradients, strict=False)):
        if isinstance(tensor, torch.Tensor) and isinstance(gradient, torch.Tensor):
            simulated = isinstance(tensor, SimulatedTensor) or isinstance(gradient, SimulatedTensor)
            if simulated and gradient.dim() and gradient.device != tensor.device:
                raise errors.error("gradient", position, tensor.device, gradient.device)
