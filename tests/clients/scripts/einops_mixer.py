"""einops: an MLP mixer of rearranging layers."""

import torch
from einops import reduce
from einops.layers.torch import Rearrange
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Sequential(Rearrange("b c (h p) (w q) -> b (h w) (c p q)", p=4, q=4), nn.Linear(48, 16))
        self.across = nn.Sequential(
            Rearrange("b n d -> b d n"), nn.Linear(16, 16), nn.GELU(), Rearrange("b d n -> b n d")
        )
        self.head = nn.Linear(16, 3)

    def forward(self, images):
        x = self.patches(images)
        return self.head(reduce(x + self.across(x), "b n d -> b d", "mean"))


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Mixer().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    data = TensorDataset(torch.rand(32, 3, 16, 16), torch.randint(0, 3, (32,)))
    for images, labels in DataLoader(data, batch_size=8, shuffle=True):
        loss = nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("loss", loss.item())


if __name__ == "__main__":
    main()
