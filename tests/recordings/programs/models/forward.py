"""Runs a model on what is on the device already."""

import sys

import torch
from torch import nn


def prepare():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return model.to("cuda").eval(), torch.zeros(2, 3, 32, 32, device="cuda")


model, images = prepare()
for _ in range(int(sys.argv[1])):
    with torch.no_grad():
        torch.softmax(model(images) @ torch.ones(4, 4, device="cuda"), -1)
