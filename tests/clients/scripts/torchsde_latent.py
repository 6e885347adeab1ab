"""torchsde: a stochastic differential equation with learned drift."""

import torch
import torchsde
from torch import nn


class Process(nn.Module):
    noise_type, sde_type = "diagonal", "ito"

    def __init__(self):
        super().__init__()
        self.drift = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))

    def f(self, t, y):
        return self.drift(y)

    def g(self, t, y):
        return 0.1 * torch.ones_like(y)


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    process = Process().to(device)
    times = torch.linspace(0, 1, 4).to(device)
    optimizer = torch.optim.Adam(process.parameters(), lr=1e-2)
    for step in range(4):
        start = torch.ones(4, 2, device=device)
        motion = torchsde.BrownianInterval(
            0.0, 1.0, size=(4, 2), device=device, entropy=step, levy_area_approximation="space-time"
        )
        loss = torchsde.sdeint(process, start, times, dt=0.25, bm=motion)[-1].pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("loss", loss.item())


if __name__ == "__main__":
    main()
