"""e3nn: a tensor product with spherical harmonics, on random points."""

import torch
from e3nn import o3
from torch import nn


class Energy(nn.Module):
    def __init__(self):
        super().__init__()
        self.harmonics = o3.Irreps.spherical_harmonics(2)
        self.product = o3.FullyConnectedTensorProduct(self.harmonics, self.harmonics, "8x0e")
        self.head = nn.Linear(8, 1)

    def forward(self, points):
        features = o3.spherical_harmonics(self.harmonics, points, normalize=True)
        return self.head(self.product(features, features)).mean()


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Energy().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(5):
        points = torch.randn(12, 3).to(device)
        loss = (model(points) - points.norm(dim=-1).mean()).pow(2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("loss", loss.item())


if __name__ == "__main__":
    main()
