"""Triton's kernels are interpreted on simulated tensors, or named; none asks for the driver of a card."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.simulator.test_masquerade import run

# The modules of Triton that the simulator changes, with what they hold where there is no driver.
STAND_IN = {
    "__init__.py": "",
    "runtime/__init__.py": "",
    "runtime/jit.py": """
import os
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
class JITFunction:
    __name__ = "add_kernel"
    def run(self, *args, **kwargs):
        raise AssertionError("libcuda.so cannot found!")
""",
    "backends/__init__.py": "",
    "backends/nvidia/__init__.py": "",
    "backends/nvidia/driver.py": """
class CudaUtils:
    def __init__(self):
        raise AssertionError("libcuda.so cannot found!")
""",
}

USE = """
import sys, torch
sys.path.insert(0, sys.argv[1])
if sys.argv[2] == "first":
    import triton.runtime.jit
import devlint.simulator
devlint.simulator.install()
from triton.runtime import jit
from triton.backends.nvidia import driver
print(jit.INTERPRETED)
try:
    jit.JITFunction().run()
except NotImplementedError as error:
    print(error)
print(driver.CudaUtils().get_device_properties(0)["multiprocessor_count"], driver.CudaUtils().get_device_capability(0))
"""

KERNEL = '''
import torch
import devlint.simulator
devlint.simulator.install()
import devlint, importlib.util, pathlib, sys
path = pathlib.Path(sys.argv[1], "kernel.py")
path.write_text("""
import triton
import triton.language as tl
@triton.jit
def add_kernel(x, y, out, n, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    sum = tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n)
    tl.store(out + at, sum * factor.to(tl.float32), mask=at < n)
""")
spec = importlib.util.spec_from_file_location("kernel", path)
kernel = importlib.util.module_from_spec(spec)
spec.loader.exec_module(kernel)
x, y = torch.randn(100, device="cuda"), torch.randn(100, device="cuda")
out = torch.empty_like(x)
out.untyped_storage()
with devlint.audit(simulate=True) as run:
    kernel.add_kernel[(4,)](x, y, out, 100, 2.0, BLOCK=32)
print(torch.equal(out, (x + y) * 2), out.device, [each.name for one in run.record.processes for each in one.events])
'''


@pytest.fixture
def triton(tmp_path: Path) -> str:
    """A folder with a package of that name."""
    for name, text in STAND_IN.items():
        path = tmp_path / "triton" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return str(tmp_path)


def test_triton_interprets_what_is_defined_on_a_simulated_device(triton: str) -> None:
    interpreted, refusal, answers = run(USE, triton, "later")
    assert interpreted == "True"
    assert refusal.startswith("devlint does not simulate Triton kernels compiled for CUDA, such as add_kernel:")
    assert answers == "108 (8, 0)"


def test_kernels_of_triton_that_was_imported_before_are_named(triton: str) -> None:
    interpreted, refusal, answers = run(USE, triton, "first")
    assert interpreted == "False"
    assert "add_kernel: Triton was imported before the simulated accelerator was there" in refusal
    assert answers == "108 (8, 0)"


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="triton is not installed")
def test_a_kernel_of_triton_computes(tmp_path: Path) -> None:
    assert run(KERNEL, str(tmp_path)) == ["True cuda:0 []"]
