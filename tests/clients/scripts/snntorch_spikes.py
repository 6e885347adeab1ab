"""snnTorch: a network of leaky integrate-and-fire neurons over ten steps of time."""

import snntorch as snn
import torch
from snntorch import surrogate
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Spiking(nn.Module):
    def __init__(self):
        super().__init__()
        gradient = surrogate.fast_sigmoid()
        self.first, self.fires = nn.Linear(10, 16), snn.Leaky(beta=0.9, spike_grad=gradient)
        self.second, self.votes = nn.Linear(16, 2), snn.Leaky(beta=0.9, spike_grad=gradient)

    def forward(self, x):
        inner, outer = self.fires.init_leaky(), self.votes.init_leaky()
        voted = []
        for _ in range(10):
            spikes, inner = self.fires(self.first(x), inner)
            _, outer = self.votes(self.second(spikes), outer)
            voted.append(outer)
        return torch.stack(voted).mean(0)


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Spiking().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for x, y in DataLoader(TensorDataset(torch.randn(32, 10), torch.randint(0, 2, (32,))), batch_size=8):
        loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("loss", loss.item())


if __name__ == "__main__":
    main()
