"""captum: integrated gradients and occlusion of a small network, batch by batch."""

import torch
from captum.attr import IntegratedGradients, Occlusion
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 3)).to(device).eval()
    gradients, occlusion = IntegratedGradients(model), Occlusion(model)
    for x, target in DataLoader(TensorDataset(torch.randn(12, 12), torch.randint(0, 3, (12,))), batch_size=4):
        x, target = x.to(device), target.to(device)
        first = gradients.attribute(x, target=target, n_steps=8)
        second = occlusion.attribute(x, (3,), target=target)
        print("sums", first.abs().sum().item(), second.abs().sum().item())


if __name__ == "__main__":
    main()
