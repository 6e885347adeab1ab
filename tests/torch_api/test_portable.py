"""The rows on names bound to CUDA, against the torch that is installed."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable

import pytest

from devlint.torch_api import arguments, matters, portable, portable_forms
from devlint.torch_api.rows import Api, Kind

torch = pytest.importorskip("torch")

FUNCTIONS = [row for row in portable.ROWS if not row.argument and row.name.startswith("torch.cuda.")]
EQUIVALENT = [row for row in FUNCTIONS if row.replacement]
without_devices = pytest.mark.skipif(
    torch.accelerator.is_available(), reason="asks what happens where there is no accelerator"
)
# What a call needs to get as far as asking for a device.
ARGUMENTS: dict[str, tuple[object, ...]] = {
    "torch.cuda.set_device": (0,),
    "torch.cuda.device": (0,),
    "torch.cuda.can_device_access_peer": (0, 1),
    "torch.cuda.set_sync_debug_mode": (1,),
    "torch.cuda.nvtx.mark": ("here",),
    "torch.cuda.nvtx.range_push": ("here",),
    "torch.cuda.manual_seed": (0,),
    "torch.cuda.manual_seed_all": (0,),
    "torch.cuda.stream": (None,),
}


def found(name: str) -> object:
    value: object = torch
    for part in name.split(".")[1:]:
        value = getattr(value, part)
    return value


def raises(name: str, given: tuple[object, ...]) -> bool:
    """Whether a call raises; a context manager is entered."""
    called = found(name)
    assert isinstance(called, Callable)  # type: ignore[arg-type]  # a protocol of typing's, for isinstance, too
    try:
        result = called(*given)
        if hasattr(result, "__enter__") and not isinstance(result, torch.Stream):
            with result:
                pass
    except Exception:
        return True
    return False


def named(rows: list[Api]) -> list[str]:
    return [row.name for row in rows]


@pytest.mark.parametrize("row", FUNCTIONS, ids=named(FUNCTIONS))
def test_every_name_exists_in_torch(row: Api) -> None:
    assert callable(found(row.name))


@pytest.mark.parametrize("row", EQUIVALENT, ids=named(EQUIVALENT))
def test_every_replacement_exists_in_torch(row: Api) -> None:
    assert callable(found(row.replacement))
    assert row.since <= tuple(int(part) for part in re.findall(r"\d+", torch.__version__)[:2])


@without_devices
@pytest.mark.parametrize(
    "row", [row for row in FUNCTIONS if row.name != "torch.cuda.set_stream"], ids=lambda row: row.name
)
def test_raises_without_cuda_as_the_table_says(row: Api) -> None:
    assert raises(row.name, ARGUMENTS.get(row.name, ())) is row.raises


@without_devices
@pytest.mark.parametrize("row", EQUIVALENT, ids=named(EQUIVALENT))
def test_replacement_raises_without_accelerator_as_the_table_says(row: Api) -> None:
    given = ARGUMENTS.get(row.name, ()) if row.kind is Kind.RENAMED else ()
    if row.name == "torch.cuda.set_stream":
        given = (torch.Stream(),)
    assert raises(row.replacement, given) is row.needs


@pytest.mark.parametrize("row", EQUIVALENT, ids=named(EQUIVALENT))
def test_parameters_are_those_that_both_names_have(row: Api) -> None:
    if not row.parameters:
        return
    mine = [*inspect.signature(found(row.name)).parameters]  # type: ignore[arg-type]  # callable, by the test above
    assert mine[: len(row.parameters)] == [*row.parameters]
    if row.kind is Kind.RENAMED:
        theirs = [*inspect.signature(found(row.replacement)).parameters.values()]  # type: ignore[arg-type]  # the same
        assert len(theirs) == len(row.parameters)
        if row.replacement != "torch.accelerator.set_stream":
            assert all(parameter.kind is inspect.Parameter.POSITIONAL_ONLY for parameter in theirs)


def test_what_other_fixers_got_wrong_is_in_no_row() -> None:
    replacements = {row.replacement for row in portable.ROWS}
    assert not {name for name in replacements if "seed" in name and "accelerator" in name}
    assert not hasattr(torch.accelerator, "manual_seed_all")
    assert portable_forms("torch.cuda.mem_get_info")[0].replacement == "torch.accelerator.get_memory_info"
    assert not hasattr(torch.accelerator, "mem_get_info")
    # the same name, and another meaning: dtypes instead of a version
    assert portable_forms("torch.cuda.get_device_capability")[0].replacement == ""
    # nothing happens without CUDA, but an error is raised without an accelerator
    assert [row.name for row in EQUIVALENT if row.needs and not row.raises and row.safe] == []


def test_names_have_one_row_each() -> None:
    keys = [(row.name, row.argument) for row in portable.ROWS]
    assert len(set(keys)) == len(keys)
    assert all(matters(row.name) or arguments(row.name) for row in portable.ROWS)


@without_devices
@pytest.mark.parametrize("row", [row for row in portable.ROWS if row.argument], ids=lambda row: row.name)
def test_pinned_memory_raises_without_accelerator(row: Api) -> None:
    size: dict[str, tuple[object, ...]] = {
        "tensor": ([1.0],), "full": ((2,), 1.0), "linspace": (0, 1, 3), "logspace": (0, 1, 3), "randint": (3, (2,)),
        "empty_strided": ((2,), (1,)), "full_like": (torch.zeros(2), 1.0), "randint_like": (torch.zeros(2), 3),
    }  # fmt: skip
    name = row.name.removeprefix("torch.")
    given = size.get(name, (torch.zeros(2),) if name.endswith("_like") else (2,))
    make = found(row.name)
    assert callable(make)
    make(*given)  # what it is given is right: only the memory is missing
    with pytest.raises(RuntimeError, match="pin"):
        make(*given, pin_memory=True)
