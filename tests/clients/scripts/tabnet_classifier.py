"""pytorch-tabnet: a classifier of tables, fitted as in scikit-learn."""

import warnings

import torch
from pytorch_tabnet.tab_model import TabNetClassifier
from sklearn.datasets import make_classification


def main():
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    x, y = make_classification(128, 8, random_state=0)
    model = TabNetClassifier(n_d=4, n_a=4, seed=0, verbose=0, device_name="auto")
    model.fit(x[:96], y[:96], eval_set=[(x[96:], y[96:])], max_epochs=2, batch_size=32, virtual_batch_size=16)
    print("loss", *model.history["loss"])
    print("accuracy", (model.predict(x) == y).mean())


if __name__ == "__main__":
    main()
