"""What proves that an argument is a tensor, asked of torch itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from devlint.flow.catalog import torch_table
from devlint.flow.program.type_hints import NUMBERS_TOO

torch = pytest.importorskip("torch")

TABLE = Path(torch_table.__file__).parent / "data" / "torch_table.json"
_BESIDES: tuple[tuple[Any, ...], ...] = (
    (), (0,), (torch.ones(3, 4),), (0, 1), ((0, 1),), (torch.ones(3, 4) > 0,), (0, torch.tensor([0, 1])),
)  # fmt: skip
"""What the functions may be given besides their input."""


def _function(name: str) -> Callable[..., object] | None:
    found: object = torch
    for part in name.split(".")[1:]:
        found = getattr(found, part, None)
    return found if callable(found) else None


def _accepts(function: Callable[..., object], given: object) -> bool:
    for besides in _BESIDES:
        try:
            function(given, *besides)
        except Exception:
            continue
        return True
    return False


def _taking_an_input() -> list[str]:
    names = [
        name
        for name in json.loads(TABLE.read_text(encoding="utf-8"))["functions"]
        if not name.startswith("torch.Tensor.")
    ]
    entries = [entry for name in sorted(names) if (entry := torch_table.function(name)) is not None]
    return [entry.name for entry in entries if entry.parameters[:1] == ("input",)]


@pytest.mark.filterwarnings("ignore")
def test_the_input_of_a_function_is_a_tensor() -> None:
    """A number, a list or nothing in the place of ``input`` raises, but where numbers are known to be taken."""
    named = _taking_an_input()
    assert len(named) > 300
    known = [(name, function) for name in named if (function := _function(name)) is not None]
    others = (2, 1.5, [1.0], None)
    loose = {name for name, function in known if any(_accepts(function, given) for given in others)}
    assert {name.rpartition(".")[2] for name in loose} <= NUMBERS_TOO
