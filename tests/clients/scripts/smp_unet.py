"""segmentation-models-pytorch: a UNet with a ResNet encoder of random weights, Dice loss and IoU."""

import segmentation_models_pytorch as smp
import torch
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = smp.Unet("resnet18", encoder_weights=None, classes=1).to(device)
    loss_function = smp.losses.DiceLoss(smp.losses.BINARY_MODE)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    data = TensorDataset(torch.rand(8, 3, 32, 32), torch.randint(0, 2, (8, 1, 32, 32)))
    for images, masks in DataLoader(data, batch_size=2):
        images, masks = images.to(device), masks.to(device)
        logits = model(images)
        loss = loss_function(logits, masks)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        counts = smp.metrics.get_stats((logits.sigmoid() > 0.5).long(), masks, mode="binary")
        print("loss", loss.item(), "iou", smp.metrics.iou_score(*counts, reduction="micro").item())


if __name__ == "__main__":
    main()
