"""What older versions of torch have elsewhere; the newer ones' way is what all other tests go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.autograd import Variable

from devlint.auditor.compatibility import wrap_backward
from devlint.auditor.modules.models import autocast_dtype
from devlint.auditor.patches import Patches

NAME = "_engine_run_backward"


def backward() -> float:
    x = torch.ones(2, requires_grad=True)
    (x * 3).sum().backward()
    assert x.grad is not None
    return float(x.grad.sum())


def test_a_backward_is_heard_where_torch_has_no_function_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in torch 2.2, whose own functions call a method of the engine."""
    if hasattr(torch.autograd.graph, NAME):

        def run(*args: Any, **kwargs: Any) -> Any:
            return Variable._execution_engine.run_backward(*args, **kwargs)

        monkeypatch.delattr(torch.autograd.graph, NAME)
        monkeypatch.setattr(torch.autograd, NAME, run)
    engine, heard, patches = Variable._execution_engine, [], Patches()

    def wrapped(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def around(original: Callable[..., Any]) -> Callable[..., Any]:
            def run(*args: Any, **kwargs: Any) -> Any:
                heard.append(name)
                return original(*args, **kwargs)

            return run

        return around

    wrap_backward(patches, wrapped("first"))
    wrap_backward(patches, wrapped("second"))
    assert backward() == 6
    assert heard == ["second", "first"]
    assert callable(Variable._execution_engine.queue_callback)
    patches.undo()
    assert Variable._execution_engine is engine
    assert backward() == 6
    assert len(heard) == 2


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_autocast_is_known_where_each_type_of_device_has_functions_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in torch 2.3."""
    with torch.autocast("cpu", torch.bfloat16), monkeypatch.context() as patched:
        patched.delattr(torch, "get_autocast_dtype", raising=False)
        assert autocast_dtype("cpu") == torch.bfloat16
        assert autocast_dtype("cuda") is None
        assert autocast_dtype("meta") is None
        patched.setattr(torch, "is_autocast_enabled", lambda: True)
        assert autocast_dtype("cuda") == torch.get_autocast_gpu_dtype()
    monkeypatch.delattr(torch, "get_autocast_dtype", raising=False)
    assert autocast_dtype("cpu") is None
