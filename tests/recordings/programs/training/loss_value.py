"""Trains in bfloat16 on what is on the device already, and reads the loss in each step."""

import sys

import torch
from torch import nn


def prepare():
    model = nn.Linear(8, 4).to("cuda", torch.bfloat16)
    return model, torch.optim.SGD(model.parameters(), lr=0.1), torch.zeros(2, 8, device="cuda", dtype=torch.bfloat16)


model, optimizer, x = prepare()
for _ in range(int(sys.argv[1])):
    loss = model(x).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    loss.item()  # recorded: train_single_gpu.py:41
