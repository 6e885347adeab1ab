"""Copies a tensor to the host and back in each step: `pinned` or `pageable`, `blocking` or `non_blocking`."""

import sys

import torch

steps, pinned, non_blocking = int(sys.argv[1]), sys.argv[2] == "pinned", sys.argv[3] == "non_blocking"


def prepare():
    host = torch.zeros(154_140_672 // 4)
    return torch.zeros(154_140_672 // 4, device="cuda"), host.pin_memory() if pinned else host


there, host = prepare()
for _ in range(steps):
    host.copy_(there, non_blocking=non_blocking)
    there.copy_(host, non_blocking=non_blocking)
    torch.cuda.synchronize()
