"""vector-quantize-pytorch: an autoencoder with a codebook."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from vector_quantize_pytorch import VectorQuantize


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(12, 8), nn.Linear(8, 12)
        self.codes = VectorQuantize(dim=8, codebook_size=16, decay=0.8)

    def forward(self, x):
        quantized, _, commitment = self.codes(self.encoder(x)[:, None])
        return self.decoder(quantized[:, 0]), commitment.sum()


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Autoencoder().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for (x,) in DataLoader(TensorDataset(torch.randn(48, 12)), batch_size=8):
        x = x.to(device)
        found, commitment = model(x)
        loss = nn.functional.mse_loss(found, x) + commitment
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("loss", loss.item())


if __name__ == "__main__":
    main()
