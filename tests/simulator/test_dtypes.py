"""The dtypes that the simulated device takes are those that torch's own tests give CUDA."""

from __future__ import annotations

import json

import pytest

from tests.documented import TEXTS
from tests.simulator.child import ran

WITHOUT_KERNEL = {f"torch.ops.aten._{kind}_attention_forward" for kind in ("flash", "efficient")}
"""What the host cannot compute."""


def compared(*arguments: str) -> tuple[dict[str, list[int]], set[str]]:
    """How many pairs of a function and a dtype agree, of how many, by who takes them; and whose do not."""
    done = ran("tests.simulator.dtypes", *arguments, seconds=300)
    assert done.returncode == 0, done.stdout + done.stderr
    *lines, last = done.stdout.splitlines()
    return json.loads(last), {line.split()[0] for line in lines}


def test_some_functions_agree_with_cuda() -> None:
    counts, different = compared("--part", "25")
    assert different <= WITHOUT_KERNEL
    assert {"both", "only CUDA"} <= counts.keys() <= {"both", "only the CPU", "only CUDA"}


@pytest.mark.slow
def test_all_functions_agree_with_cuda() -> None:
    counts, different = compared()
    assert different == WITHOUT_KERNEL
    assert sum(of for _, of in counts.values()) > 6000
    taken, of = (sum(counts[kind][place] for kind in ("both", "only CUDA")) for place in (0, 1))
    page = " ".join(TEXTS["docs/simulator.md"].split())
    assert f"Of the {of} pairs that CUDA takes {taken} are taken" in page
    assert "among them {} of {} that the CPU refuses".format(*counts["only CUDA"]) in page
    assert counts["only the CPU"][0] == counts["only the CPU"][1]
    assert f"All {counts['only the CPU'][1]} that the CPU takes" in page


@pytest.mark.slow
def test_the_table_is_what_this_torch_says() -> None:
    done = ran("tools.make_dtype_table", "--check", seconds=300)
    assert done.returncode == 0, done.stderr
