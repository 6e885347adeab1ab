"""torchmetrics: a collection of metrics over an evaluation loop, after training with a running mean."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics import MeanMetric, MetricCollection
from torchmetrics.classification import MulticlassAccuracy, MulticlassAUROC, MulticlassF1Score


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.Linear(10, 3).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    mean = MeanMetric().to(device)
    metrics = MetricCollection([MulticlassAccuracy(3), MulticlassF1Score(3), MulticlassAUROC(3)]).to(device)
    loader = DataLoader(TensorDataset(torch.randn(64, 10), torch.randint(0, 3, (64,))), batch_size=16)
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean.update(loss.detach())
    print("loss", mean.compute().item())
    with torch.no_grad():
        for x, y in loader:
            metrics.update(model(x.to(device)), y.to(device))
    print({name: value.item() for name, value in metrics.compute().items()})


if __name__ == "__main__":
    main()
