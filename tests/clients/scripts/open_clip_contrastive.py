"""OpenCLIP: a tiny CLIP with random weights and the contrastive loss."""

import torch
from open_clip import ClipLoss
from open_clip.model import CLIP, CLIPTextCfg, CLIPVisionCfg
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    vision = CLIPVisionCfg(layers=2, width=64, head_width=32, patch_size=8, image_size=16)
    text = CLIPTextCfg(context_length=8, vocab_size=64, width=32, heads=2, layers=2)
    model = CLIP(32, vision, text).to(device)
    loss_function = ClipLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    data = TensorDataset(torch.rand(16, 3, 16, 16), torch.randint(1, 64, (16, 8)))
    for images, texts in DataLoader(data, batch_size=4):
        images = images.to(device=device, non_blocking=True)
        texts = texts.to(device=device, non_blocking=True)
        loss = loss_function(*model(images, texts))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("loss", loss.item())


if __name__ == "__main__":
    main()
