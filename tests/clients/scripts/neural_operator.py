"""neuraloperator: a small Fourier neural operator on random fields."""

import torch
from neuralop.losses import LpLoss
from neuralop.models import FNO
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = FNO(n_modes=(4, 4), hidden_channels=8, in_channels=1, out_channels=1, n_layers=2).to(device)
    loss_function = LpLoss(d=2)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    fields = torch.randn(16, 1, 12, 12)
    for x, y in DataLoader(TensorDataset(fields, fields.cumsum(-1)), batch_size=4):
        loss = loss_function(model(x.to(device)), y.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("loss", loss.item())


if __name__ == "__main__":
    main()
