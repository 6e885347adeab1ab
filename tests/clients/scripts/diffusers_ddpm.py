"""diffusers: a small UNet learns to denoise, then samples with DDPM."""

import torch
from diffusers import DDPMScheduler, UNet2DModel
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = UNet2DModel(
        sample_size=8,
        in_channels=1,
        out_channels=1,
        layers_per_block=1,
        block_out_channels=(16, 32),
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        norm_num_groups=8,
    ).to(device)
    scheduler = DDPMScheduler(num_train_timesteps=20)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for (images,) in DataLoader(TensorDataset(torch.rand(24, 1, 8, 8)), batch_size=4, pin_memory=True):
        images = images.to(device, non_blocking=True)
        noise = torch.randn(images.shape).to(device)
        steps = torch.randint(0, 20, (len(images),)).to(device)
        loss = nn.functional.mse_loss(model(scheduler.add_noise(images, noise, steps), steps).sample, noise)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print("loss", loss.item())
    sample = torch.randn(2, 1, 8, 8).to(device)
    scheduler.set_timesteps(5)
    for step in scheduler.timesteps:
        with torch.no_grad():
            sample = scheduler.step(
                model(sample, step).sample, step, sample, generator=torch.Generator().manual_seed(0)
            ).prev_sample
    print("sample", sample.abs().sum().item())


if __name__ == "__main__":
    main()
