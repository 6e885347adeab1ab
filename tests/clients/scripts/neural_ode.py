"""torchdiffeq: a neural ODE fitted to a spiral."""

import torch
from torch import nn
from torchdiffeq import odeint


class Dynamics(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))

    def forward(self, t, y):
        return self.net(y**3)


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    times = torch.linspace(0.0, 1.0, 10).to(device)
    start = torch.tensor([[2.0, 0.0]]).to(device)
    rotation = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]]).to(device)
    with torch.no_grad():
        truth = odeint(lambda t, y: (y**3) @ rotation, start, times, method="dopri5")
    model = Dynamics().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(5):
        optimizer.zero_grad()
        loss = (odeint(model, start, times) - truth).abs().mean()
        loss.backward()
        optimizer.step()
        print("loss", loss.item())


if __name__ == "__main__":
    main()
