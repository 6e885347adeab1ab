"""fairscale: layers that recompute their activations, in a loop with mixed precision off."""

import torch
from fairscale.nn import checkpoint_wrapper
from torch import nn


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    layers = [checkpoint_wrapper(nn.Sequential(nn.Linear(16, 16), nn.GELU())) for _ in range(3)]
    model = nn.Sequential(*layers, nn.Linear(16, 1)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        x = torch.randn(8, 16).to(device)
        loss = (model(x) - x.sum(-1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("loss", loss.item())


if __name__ == "__main__":
    main()
