"""What the closing section says of each failure of a suite on a simulated accelerator."""

from __future__ import annotations

import re

import pytest
import torch  # noqa: F401  # here, since the fixture `pytester` takes away what is imported in a test

from tests.testing.test_plugin import needs_the_simulation, run
from tests.testing.test_suite import section

pytest_plugins = "pytester"

KINDS = """\
import subprocess
import sys
import unittest

import torch

D = torch.device("cuda")
CUDA = torch.cuda.is_available()
CODE = "import torch\\nx = torch.ones(2, device='cuda:0')  # not cuda:7\\ntorch.ones(2) + x"

def test_memory():
    torch.empty(10**14, device=D)

def test_index():
    torch.ones(3, device=D)[torch.tensor([7], device=D)]

def test_dtype():
    whole = torch.ones(2, 2, dtype=torch.long, device=D)
    whole @ whole

def test_ordinal():
    torch.ones(3, device="cuda:5")

def test_shapes():
    torch.ones(2, 3, device=D) @ torch.ones(2, 3, device=D)

def test_quantized():
    torch.quantize_per_tensor(torch.ones(2, device=D if CUDA else "cpu"), 0.1, 0, torch.qint8)

def test_mismatch():
    torch.ones(2, device=D) + torch.ones(2)

def test_process():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

def test_words():
    assert "same device" not in "Expected all tensors to be on the same device, but found cpu and cuda:0"

class Cases(unittest.TestCase):
    def test_parts(self):
        with self.subTest("one"):
            assert 1 == 2
"""
SUBTESTS = """\
import torch

def test_wrong(subtests):
    with subtests.test("one"):
        assert 1 == 2

def test_wanting(subtests):
    with subtests.test("one"):
        torch.ones(2, device="cuda") + torch.ones(2)
"""


def test_each_failure_is_of_its_kind(suite: pytest.Pytester) -> None:
    needs_the_simulation()
    suite.makepyfile(test_kinds=KINDS)
    with_subtests = hasattr(pytest, "Subtests")
    if with_subtests:
        suite.makepyfile(test_subtests=SUBTESTS)
    text = section(run(suite, "--devlint-simulate", "--devlint-compare-cpu"))
    errors, others, missing, failures, *_ = re.split(r"\n\n(?=Tensors|devlint|Needs|Besides|Lines)", text)
    assert len(re.findall("DVL101", errors)) == 1 + with_subtests
    assert "cuda:7" not in text
    assert re.findall(r"(?m)^(.*?)(?:: .*| \(\d\))$", others) == [
        "Tensors on different devices in a process that the test started",
        "  test_kinds.py::test_process  RuntimeError",
        "Refused by the device, as by a real one",
        "  test_kinds.py::test_memory  test_kinds.py:12  OutOfMemoryError",
        "  test_kinds.py::test_index  test_kinds.py:15  AcceleratorError",
        "  test_kinds.py::test_dtype  test_kinds.py:19  NotImplementedError",
        "  test_kinds.py::test_ordinal  test_kinds.py:22  AcceleratorError",
    ]
    assert " ".join(missing.split()).endswith(" (test_kinds.py::test_quantized)")
    assert max(map(len, missing.splitlines())) <= 100
    wanting = ["memory", "index", "dtype", "ordinal", "shapes", "mismatch", "process"]
    assert [line.split("  ")[:2] for line in failures.splitlines()] == [
        [f"Needs an accelerator: fails on the CPU for want of one ({7 + with_subtests})"],
        *(["", f"test_kinds.py::test_{name}"] for name in wanting),
        *[["", "test_subtests.py::test_wanting"]][:with_subtests],
        [f"Fails on the CPU, too ({2 + with_subtests})"],
        ["", "test_kinds.py::test_words"],
        ["", "test_kinds.py::Cases::test_parts"],
        *[["", "test_subtests.py::test_wrong"]][:with_subtests],
    ]
