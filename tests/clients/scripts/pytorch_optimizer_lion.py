"""pytorch-optimizer: Lion and a schedule, in a loop with a closure."""

import torch
from pytorch_optimizer import Lion
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 1)).to(device)
    optimizer = Lion(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 8)
    for x, y in DataLoader(TensorDataset(torch.randn(64, 10), torch.randn(64, 1)), batch_size=8):
        x, y = x.to(device), y.to(device)

        def closure(x=x, y=y):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            return loss

        loss = optimizer.step(closure)
        schedule.step()
        print("loss", loss.item())


if __name__ == "__main__":
    main()
