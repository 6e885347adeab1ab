"""skorch: a small classifier with a validation split, fitted as an estimator of scikit-learn."""

import torch
from sklearn.datasets import make_classification
from skorch import NeuralNetClassifier
from torch import nn


def main():
    torch.manual_seed(0)
    x, y = make_classification(200, 10, random_state=0)
    net = NeuralNetClassifier(
        nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 2), nn.Softmax(dim=-1)),
        max_epochs=3,
        lr=0.1,
        batch_size=40,
        device="cuda" if torch.cuda.is_available() else "cpu",
        verbose=0,
    )
    net.fit(x.astype("float32"), y.astype("int64"))
    for epoch in net.history:
        print("loss", epoch["train_loss"], epoch["valid_loss"])
    print("accuracy", (net.predict(x.astype("float32")) == y).mean())


if __name__ == "__main__":
    main()
