"""BoTorch: two rounds of Bayesian optimization."""

import warnings

import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood


def main():
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.rand(8, 2, dtype=torch.double).to(device)
    bounds = torch.stack([torch.zeros(2), torch.ones(2)]).double().to(device)
    for _ in range(2):
        y = -(x - 0.3).square().sum(-1, keepdim=True)
        model = SingleTaskGP(x, y)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        improvement = LogExpectedImprovement(model, best_f=y.max())
        found, value = optimize_acqf(improvement, bounds, q=1, num_restarts=2, raw_samples=8)
        x = torch.cat([x, found])
        print("value", round(value.item(), 6), [round(each, 6) for each in found.flatten().tolist()])


if __name__ == "__main__":
    main()
