"""Copies pageable memory with `non_blocking=True`, computes besides, and waits for an event of each."""

import sys

import torch


def prepare():
    return torch.randn(5 * 1024**2), torch.randn(5 * 1024**2, device="cuda")


paged, there = prepare()
for _ in range(int(sys.argv[1])):
    copied = paged.to("cuda", non_blocking=True)
    first = torch.cuda.current_stream().record_event()
    product = there * there * there
    second = torch.cuda.current_stream().record_event()
    first.synchronize()
    second.synchronize()
