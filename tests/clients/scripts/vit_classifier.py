"""vit-pytorch: a small vision transformer under autocast, with an accuracy over an evaluation loop."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from vit_pytorch import ViT


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = ViT(image_size=16, patch_size=4, num_classes=3, dim=32, depth=2, heads=2, mlp_dim=64).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    data = TensorDataset(torch.rand(32, 3, 16, 16), torch.randint(0, 3, (32,)))
    for images, labels in DataLoader(data, batch_size=8):
        loss = nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        print("loss", loss.item())
    model.eval()
    correct = 0
    with torch.no_grad():
        for images, labels in DataLoader(data, batch_size=8):
            correct += (model(images.to(device)).argmax(-1).cpu() == labels).sum().item()
    print("correct", correct)


if __name__ == "__main__":
    main()
