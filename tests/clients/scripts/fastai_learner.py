"""fastai: a `Learner` on loaders of its own, one cycle."""

import torch
from fastai.data.core import DataLoaders
from fastai.data.load import DataLoader
from fastai.learner import Learner
from fastai.metrics import accuracy
from torch import nn


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    data = [(torch.randn(10), torch.tensor(each % 2)) for each in range(64)]
    loaders = DataLoaders(DataLoader(data[:48], bs=8), DataLoader(data[48:], bs=8)).to(device)
    model = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 2))
    learner = Learner(loaders, model, loss_func=nn.CrossEntropyLoss(), metrics=accuracy)
    with learner.no_logging():
        learner.fit(2, 1e-2)
    for values in learner.recorder.values:
        print("loss", *[float(each) for each in values])


if __name__ == "__main__":
    main()
