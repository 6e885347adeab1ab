"""kornia: images augmented on the device before a small network sees them."""

import kornia.augmentation as K
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    augment = nn.Sequential(
        K.RandomHorizontalFlip(p=0.5), K.RandomAffine(10.0, p=1.0), K.ColorJitter(0.1, 0.1, 0.1, 0.1, p=1.0)
    ).to(device)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 3))
    model.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = TensorDataset(torch.rand(32, 3, 16, 16), torch.randint(0, 3, (32,)))
    for images, labels in DataLoader(data, batch_size=8):
        images, labels = images.to(device), labels.to(device)
        loss = nn.functional.cross_entropy(model(augment(images)), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("loss", loss.item())


if __name__ == "__main__":
    main()
