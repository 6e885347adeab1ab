"""Liger Kernel: a gated layer and cross entropy as kernels of Triton, where there is a GPU."""

import torch
from torch import nn

if torch.cuda.is_available():
    from liger_kernel.transformers import LigerCrossEntropyLoss
    from liger_kernel.transformers.functional import liger_swiglu as swiglu
else:
    LigerCrossEntropyLoss = nn.CrossEntropyLoss

    def swiglu(gate, up):
        return nn.functional.silu(gate) * up


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.up = nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x):
        return swiglu(self.gate(x), self.up(x))


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.Sequential(nn.Embedding(32, 16), Gated(), nn.Linear(16, 32)).to(device)
    loss_function = LigerCrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for _ in range(4):
        tokens = torch.randint(0, 32, (16,)).to(device)
        loss = loss_function(model(tokens), tokens)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("loss", round(loss.item(), 4))


if __name__ == "__main__":
    main()
