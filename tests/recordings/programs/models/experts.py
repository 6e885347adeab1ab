"""Layers of which each asks twice whether there is a NaN."""

import sys

import torch
from torch import nn


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(8, 2)

    def forward(self, x):
        scores = self.gate(x)
        if torch.isnan(scores).any():  # recorded: switch_transformers/model.py:143
            scores = torch.nan_to_num(scores)
        outputs = torch.stack([x, x], dim=-1)
        if torch.isnan(outputs).any():  # recorded: switch_transformers/model.py:143
            outputs = torch.nan_to_num(outputs)
        return (outputs * scores.unsqueeze(-2)).sum(-1)


def prepare():
    return nn.Sequential(*[Experts() for _ in range(10)]).to("cuda"), torch.zeros(2, 3, 8, device="cuda")


model, tokens = prepare()
for _ in range(int(sys.argv[1])):
    with torch.no_grad():
        model(tokens)
