"""The tables of torch's names say what the installed torch says."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from devlint.torch_api.deprecated import ROWS
from devlint.torch_api.rows import Api, Kind

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
DEPRECATION = re.compile(r"deprecated|renamed|now calls|Use `")
WARNED_OF_IN_USE = (
    "torch.nn.parallel.",
    "torch.utils.data.",
    "torch.Tensor.",
    "torch.profiler.",
    "torch.autograd.profiler.",
    "torch.autograd.V",
)


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """Put back what the old names set."""
    import torch

    kinds = ("cpu", "cuda", "xla", "ipu")
    before = [(kind, torch.get_autocast_dtype(kind), torch.is_autocast_enabled(kind)) for kind in kinds]
    yield
    for kind, dtype, enabled in before:
        torch.set_autocast_dtype(kind, dtype)
        torch.set_autocast_enabled(kind, enabled)
    torch.set_default_dtype(torch.float32)


def named(path: str) -> Any:
    """What a dotted name stands for; reading it may warn."""
    module, _, name = path.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError:
        return getattr(named(module), name)


def told(action: Callable[[], object]) -> list[type[Warning]]:
    """The kinds of the deprecations that torch tells of; the action itself may fail where there is no GPU."""
    import torch

    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings(record=True) as seen, suppress(RuntimeError, AttributeError):
            warnings.simplefilter("always")
            action()
    finally:
        torch.set_warn_always(False)
    return [warning.category for warning in seen if DEPRECATION.search(str(warning.message))]


def call(row: Api) -> None:
    """Call the old name, with whatever it takes."""
    import torch

    if row.kind is Kind.ATTRIBUTE:
        profiler = torch.autograd.profiler.profile()
        with profiler:
            torch.zeros(3).sum()
        getattr(profiler.function_events[0], row.name.rpartition(".")[2])
        return
    function = named(row.name)
    if row.kind is Kind.EXPRESSION:
        return
    for argument in ((), (lambda: None,), (False,), (0,), (torch.float16,), ("torch.FloatTensor",)):
        with suppress(TypeError, ValueError):
            function(*argument)
            return


@pytest.mark.parametrize(
    "row",
    [row for row in ROWS if not row.argument and not row.name.startswith(WARNED_OF_IN_USE)],
    ids=lambda row: row.name,
)
def test_torch_warns_of_the_old_name(row: Api) -> None:
    seen = told(lambda: call(row))
    assert {kind is DeprecationWarning for kind in seen} == {row.hidden}, (row.name, seen)


def use_of(row: Api) -> Callable[[], object]:
    import torch

    if row.name.startswith("torch.Tensor."):
        return lambda: getattr(torch.zeros(1), row.name.rpartition(".")[2])("cuda")
    if row.name.endswith("DataLoader"):
        return lambda: list(torch.utils.data.DataLoader([1], pin_memory=True, pin_memory_device="cuda"))
    return lambda: named(row.name)(use_cuda=True)


@pytest.mark.parametrize(
    "row",
    [row for row in ROWS if row.argument and "Distributed" not in row.name],
    ids=lambda row: f"{row.name} {row.argument}",
)
def test_torch_warns_of_the_old_argument(row: Api) -> None:
    seen = told(use_of(row))
    assert {kind is DeprecationWarning for kind in seen} == {row.hidden}, (row.name, seen)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.name} {row.argument}")
def test_the_replacement_exists(row: Api) -> None:
    if row.kind is Kind.ATTRIBUTE:
        assert hasattr(named(row.name.rpartition(".")[0]), row.replacement)
    elif row.argument:
        if not row.name.startswith("torch.Tensor."):
            assert row.argument in inspect.signature(named(row.name)).parameters
            assert not row.replacement or row.replacement in inspect.signature(named(row.name)).parameters
    elif row.replacement:
        new = named(row.replacement.removesuffix("()"))
        if row.parameters:
            assert tuple(inspect.signature(named(row.name)).parameters) == row.parameters
            assert set(row.parameters) < set(inspect.signature(new).parameters)
        if row.keyword:
            assert row.keyword[0] in inspect.signature(new).parameters


def test_what_the_arguments_of_distributed_data_parallel_are_worth() -> None:
    """It cannot be made here, without a process group: its source has to say it."""
    from torch.nn.parallel import DistributedDataParallel

    source = inspect.getsource(DistributedDataParallel.__init__)
    assert "`broadcast_buffers` is deprecated. Use `forward_sync_buffers`" in source
    assert "`check_reduction` argument in `DistributedDataParallel`" in source
    assert "broadcast_buffers if broadcast_buffers is not None else True" in source


def test_a_variable_is_a_detached_tensor() -> None:
    """So that `Variable(x)` is `x` only where `x` has no graph."""
    import torch
    from torch.autograd import Variable

    x = torch.ones(2, requires_grad=True)
    assert Variable(x * 2).requires_grad is False
    assert Variable(x, requires_grad=True) is not x
    assert Variable(x).data_ptr() == x.data_ptr()
