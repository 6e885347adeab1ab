"""The texts of the simulated errors are those in torch's own library."""

from __future__ import annotations

import mmap
import re
from pathlib import Path

import pytest
import torch

from devlint.simulator.errors import TEXTS
from devlint.simulator.refusals.determinism import ALERT, WARNING


@pytest.mark.skipif(
    torch.__version__.split(".")[:2] != ["2", "13"],
    reason="the texts are those of torch 2.13, the release that is pinned",
)
def test_texts_are_in_torchs_library() -> None:
    path = Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"
    if not path.is_file():
        pytest.skip("torch's library has another name on this system")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as library:
        pieces = {
            piece for text in (*TEXTS.values(), ALERT, WARNING) for piece in re.split(r"\{\}", text) if len(piece) > 12
        }
        missing = [piece for piece in sorted(pieces) if library.find(piece.encode()) < 0]
    assert not missing
