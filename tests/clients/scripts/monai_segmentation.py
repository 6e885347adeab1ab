"""MONAI: a 3D UNet with Dice loss, then inference by a sliding window and a Dice metric."""

import torch
from monai.inferers import sliding_window_inference
from monai.losses import DiceCELoss
from monai.metrics import DiceMetric
from monai.networks.nets import UNet
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = UNet(spatial_dims=3, in_channels=1, out_channels=2, channels=(4, 8, 16), strides=(2, 2)).to(device)
    loss_function = DiceCELoss(to_onehot_y=True, softmax=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    data = TensorDataset(torch.rand(8, 1, 16, 16, 16), torch.randint(0, 2, (8, 1, 16, 16, 16)))
    model.train()
    for image, label in DataLoader(data, batch_size=2, pin_memory=torch.cuda.is_available()):
        image, label = image.to(device), label.to(device)
        optimizer.zero_grad()
        loss = loss_function(model(image), label)
        loss.backward()
        optimizer.step()
        print("loss", loss.item())
    metric = DiceMetric(include_background=False)
    model.eval()
    with torch.no_grad():
        for image, label in DataLoader(data, batch_size=1):
            found = sliding_window_inference(image.to(device), (8, 8, 8), 4, model)
            metric(found.argmax(1, keepdim=True), label.to(device))
    print("dice", metric.aggregate().item())


if __name__ == "__main__":
    main()
