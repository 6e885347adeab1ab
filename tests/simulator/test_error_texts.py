"""The texts of the simulated errors are those in torch's own library."""

from __future__ import annotations

import mmap
import re
from pathlib import Path

import pytest
import torch

from devlint.simulator.errors import TEXTS
from devlint.simulator.refusals import wording
from devlint.simulator.refusals.determinism import ALERT, WARNING

SHORT = 16
"""Compilers keep texts that are no longer in registers, not in the library."""
LIBRARIES = Path(torch.__file__).parent / "lib"


@pytest.mark.skipif(
    torch.__version__.split(".")[:2] != ["2", "13"],
    reason="the texts are those of torch 2.13, the release that is pinned",
)
def test_texts_are_in_torchs_library() -> None:
    path = LIBRARIES / "libtorch_cpu.so"
    if not path.is_file():
        pytest.skip("torch's library has another name on this system")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as library:
        pieces = {
            piece for text in (*TEXTS.values(), ALERT, WARNING) for piece in re.split(r"\{\}", text) if len(piece) > 12
        }
        missing = [piece for piece in sorted(pieces) if library.find(piece.encode()) < 0]
    assert not missing


@pytest.mark.slow
def test_names_of_kernels_are_in_torchs_library_for_cuda() -> None:
    paths = [LIBRARIES / f"libtorch_cuda{part}.so" for part in ("", "_linalg")]
    if not paths[0].is_file():
        pytest.skip("torch is built without CUDA")
    missing = {name for name in wording.NAMES.values() if len(name) > SHORT}
    for path in paths:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as library:
            missing = {name for name in missing if library.find(f"{name}\0".encode()) < 0}
    assert not missing


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("\"linalg_svd_cpu\" not implemented for 'Half'", "\"svd_cuda_gesvdj\" not implemented for 'Half'"),
        ("\"erf_vml_cpu\" not implemented for 'Bool'", "\"erf_cuda\" not implemented for 'Bool'"),
        ("\"mul_cpu_reduced_float\" not implemented for 'Byte'", "\"mul_cuda\" not implemented for 'Byte'"),
        (
            "\"bernoulli_scalar_cpu_\" not implemented for 'Bool'",
            "\"bernoulli_scalar_cuda_\" not implemented for 'Bool'",
        ),
        ("\"svd_cuda_gesvdj\" not implemented for 'Half'", "\"svd_cuda_gesvdj\" not implemented for 'Half'"),
        ("Sort does not support complex dtypes on CPU", "Sort currently does not support complex dtypes on CUDA."),
        ("expected x to be on cpu, but it's on cuda:0", "expected x to be on cpu, but it's on cuda:0"),
    ],
)
def test_what_the_host_refuses_is_said_of_cuda(said: str, meant: str) -> None:
    assert wording.of_cuda(said) == meant
