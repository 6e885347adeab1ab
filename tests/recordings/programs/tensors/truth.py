"""Asks for the truth of a comparison, and waits for an event and for the device."""

import sys

import torch


def prepare():
    return torch.ones(3, device="cuda")


x = prepare()
for _ in range(int(sys.argv[1])):
    event = torch.cuda.current_stream().record_event()
    event.synchronize()
    if x.sum() > 0:
        x = x + 1
    torch.cuda.synchronize()
