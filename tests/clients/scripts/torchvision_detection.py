"""torchvision: a detector with a small backbone, trained on boxes and then asked for some."""

import torch
from torchvision.models import mobilenet_v3_small
from torchvision.models.detection import FasterRCNN
from torchvision.models.detection.rpn import AnchorGenerator
from torchvision.ops import MultiScaleRoIAlign


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    backbone = mobilenet_v3_small(weights=None).features
    backbone.out_channels = 576
    model = FasterRCNN(
        backbone,
        num_classes=2,
        rpn_anchor_generator=AnchorGenerator(((16, 32),), ((0.5, 1.0),)),
        box_roi_pool=MultiScaleRoIAlign(["0"], 3, 2),
        min_size=64,
        max_size=64,
    ).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    box = torch.tensor([[8.0, 8.0, 40.0, 40.0]])
    for _ in range(3):
        images = [torch.rand(3, 64, 64).to(device) for _ in range(2)]
        targets = [{"boxes": box.to(device), "labels": torch.ones(1, dtype=torch.int64).to(device)} for _ in images]
        losses = model(images, targets)
        loss = sum(losses.values())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("loss", loss.item())
    model.eval()
    with torch.no_grad():
        print("boxes", sum(len(found["boxes"]) for found in model(images)))


if __name__ == "__main__":
    main()
