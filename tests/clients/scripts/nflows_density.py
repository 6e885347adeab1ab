"""nflows: a masked autoregressive flow fitted to points by maximum likelihood."""

import torch
from nflows.distributions.normal import StandardNormal
from nflows.flows.base import Flow
from nflows.transforms.autoregressive import MaskedAffineAutoregressiveTransform
from nflows.transforms.base import CompositeTransform
from nflows.transforms.permutations import ReversePermutation
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    layers = []
    for _ in range(2):
        layers += [ReversePermutation(2), MaskedAffineAutoregressiveTransform(2, 8)]
    flow = Flow(CompositeTransform(layers), StandardNormal([2])).to(device)
    optimizer = torch.optim.Adam(flow.parameters(), lr=1e-2)
    for (x,) in DataLoader(TensorDataset(torch.randn(64, 2) * 2 + 1), batch_size=16):
        loss = -flow.log_prob(inputs=x.to(device)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("loss", loss.item())


if __name__ == "__main__":
    main()
