"""Pyro: stochastic variational inference of a regression."""

import pyro
import pyro.distributions as dist
import torch
from pyro.infer import SVI, Trace_ELBO
from pyro.infer.autoguide import AutoDiagonalNormal
from pyro.nn import PyroModule, PyroSample
from torch import nn


class Regression(PyroModule):
    def __init__(self, device):
        super().__init__()
        self.linear = PyroModule[nn.Linear](3, 1)
        zero, one = torch.zeros((), device=device), torch.ones((), device=device)
        self.linear.weight = PyroSample(dist.Normal(zero, one).expand([1, 3]).to_event(2))
        self.linear.bias = PyroSample(dist.Normal(zero, one).expand([1]).to_event(1))

    def forward(self, x, y=None):
        mean = self.linear(x).squeeze(-1)
        with pyro.plate("data", x.shape[0]):
            pyro.sample("obs", dist.Normal(mean, 0.1), obs=y)
        return mean


def main():
    pyro.set_rng_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.randn(50, 3).to(device)
    y = x.sum(-1)
    model = Regression(device).to(device)
    svi = SVI(model, AutoDiagonalNormal(model), pyro.optim.Adam({"lr": 0.05}), Trace_ELBO())
    for _ in range(6):
        print("loss", svi.step(x, y))


if __name__ == "__main__":
    main()
