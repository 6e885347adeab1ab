"""lpips: images optimized towards others by a perceptual distance with random weights."""

import lpips
import torch


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    distance = lpips.LPIPS(net="alex", pretrained=False, pnet_rand=True, verbose=False).to(device)
    target = torch.rand(1, 3, 64, 64, device="cpu").to(device)
    image = torch.zeros(1, 3, 64, 64, device=device, requires_grad=True)
    optimizer = torch.optim.Adam([image], lr=0.1)
    for _ in range(4):
        loss = distance(image, target).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("loss", loss.item())


if __name__ == "__main__":
    main()
