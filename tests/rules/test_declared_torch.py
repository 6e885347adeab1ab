"""What a claim needs of torch, beside the youngest that the project allows."""

from __future__ import annotations

import pytest

from devlint.check.analysis import check_source
from devlint.config.schema import Config
from devlint.config.torch_requirement import TorchRequirement

INDEXED = """
import torch

def scores(x: torch.Tensor):
    kept = torch.zeros(8, 3)
    right = x.cuda().argmax(1) == 0
    return kept[right]
"""
BARRIER = """
import os

import torch
import torch.distributed as dist

def main():
    dist.init_process_group("nccl")
    {meets}
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
"""


def allowing(latest: tuple[int, int] | None) -> Config:
    return Config(torch_requirement=TorchRequirement((1, 8), "torch", "requirements.txt", latest))


@pytest.mark.parametrize(
    ("latest", "told"), [(None, ["DVL101"]), ((2, 5), ["DVL101"]), ((1, 13), ["DVL101"]), ((1, 12), [])]
)
def test_torch_before_1_13_copies_an_index(latest: tuple[int, int] | None, told: list[str]) -> None:
    found = check_source(INDEXED, config=allowing(latest))
    assert [one.code for one in found if one.code == "DVL101"] == told


@pytest.mark.parametrize(
    ("meets", "latest", "told"),
    [
        ("dist.barrier()", None, ["DVL502"]),
        ("dist.barrier()", (2, 1), ["DVL502"]),
        ("dist.barrier()", (2, 0), []),
        # nothing guesses the device of objects
        ("dist.broadcast_object_list([1])", (2, 0), ["DVL502"]),
    ],
)
def test_torch_before_2_1_takes_the_gpu_of_the_rank(
    meets: str, latest: tuple[int, int] | None, told: list[str]
) -> None:
    found = check_source(BARRIER.format(meets=meets), config=allowing(latest))
    assert [one.code for one in found if one.code == "DVL502"] == told
