"""timm: a small ResNet from its registry, with label smoothing, mixup and an average of the weights."""

import numpy as np
import timm
import torch
from timm.data import Mixup
from timm.loss import SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from timm.utils import ModelEmaV3
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    np.random.seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = timm.create_model("resnet10t", num_classes=4).to(device)
    average = ModelEmaV3(model, decay=0.9)
    mixup = Mixup(mixup_alpha=0.2, cutmix_alpha=0.0, label_smoothing=0.1, num_classes=4)
    loss_function = SoftTargetCrossEntropy()
    optimizer = create_optimizer_v2(model, "adamw", lr=1e-3)
    data = TensorDataset(torch.rand(16, 3, 32, 32), torch.randint(0, 4, (16,)))
    for number, (images, labels) in enumerate(DataLoader(data, batch_size=4)):
        images, labels = mixup(images.to(device), labels.to(device))
        loss = loss_function(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update(model, step=number)
        print("loss", loss.item())
    average.eval()
    with torch.no_grad():
        print("sum", average(images).sum().item())


if __name__ == "__main__":
    main()
