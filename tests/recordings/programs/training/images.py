"""Trains on batches of images out of a loader: both parts of a batch are copied, blocking, from pageable memory."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader

steps, batch = int(sys.argv[1]), int(sys.argv[2])


class Images:
    def __len__(self):
        return steps * batch

    def __getitem__(self, index):
        return torch.zeros(3, 224, 224), index % 10


def prepare():
    model = nn.Sequential(nn.AvgPool2d(32), nn.Flatten(), nn.Linear(3 * 7 * 7, 10)).to("cuda")
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


model, optimizer = prepare()
if "scalar" in sys.argv:
    torch.tensor(1.0, device="cuda")
for images, labels in DataLoader(Images(), batch_size=batch):
    x, y = images.to(device="cuda"), labels.to(device="cuda")  # recorded: resnet50_profiler_api.py:44
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
