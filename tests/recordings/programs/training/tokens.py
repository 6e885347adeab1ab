"""Feeds tokens, targets and document ends in pageable memory to the device with `non_blocking=True`."""

import sys
import threading

import torch
from torch import nn

steps, how = int(sys.argv[1]), sys.argv[2]
LENGTH = 32768 if sys.argv[2] == "converted" else 16384


def prepare():
    model = nn.Embedding(64, 4).to("cuda")
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


def batch():
    inputs, targets = torch.zeros(LENGTH, dtype=torch.int32), torch.zeros(LENGTH, dtype=torch.int64)
    ends = torch.zeros(128, dtype=torch.int32)
    if how == "converted":
        inputs, targets = inputs.to(torch.uint16), targets.to(torch.uint16)
        return (
            inputs.to(device="cuda", dtype=torch.int32, non_blocking=True),
            targets.to(device="cuda", dtype=torch.int64, non_blocking=True),
            ends.to(torch.int64).to(device="cuda", dtype=torch.int32, non_blocking=True),
        )
    return (
        inputs.to(device="cuda", non_blocking=True),
        targets.to(device="cuda", non_blocking=True),
        ends.to(device="cuda", non_blocking=True),
    )


model, optimizer = prepare()
ready = []
for _ in range(steps):
    if how == "thread":
        worker = threading.Thread(target=lambda: ready.append(batch()))
        worker.start()
        worker.join()
        inputs, targets, ends = ready.pop()
    else:
        inputs, targets, ends = batch()
    loss = model(inputs).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
