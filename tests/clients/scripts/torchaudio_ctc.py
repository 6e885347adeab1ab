"""torchaudio: mel spectrograms of noise, a small acoustic model and the CTC loss."""

import torch
import torchaudio
from torch import nn


class Acoustic(nn.Module):
    def __init__(self):
        super().__init__()
        self.mel = torchaudio.transforms.MelSpectrogram(16_000, n_fft=256, n_mels=16)
        self.rnn, self.head = nn.GRU(16, 24, batch_first=True), nn.Linear(24, 8)

    def forward(self, waves):
        features = (self.mel(waves) + 1e-6).log().transpose(1, 2)
        return self.head(self.rnn(features)[0]).log_softmax(-1)


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Acoustic().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(4):
        waves = torch.randn(2, 4_000).to(device)
        targets = torch.randint(1, 8, (2, 5)).to(device)
        found = model(waves).transpose(0, 1)
        lengths = torch.full((2,), found.shape[0]), torch.full((2,), 5)
        loss = nn.functional.ctc_loss(found, targets, *lengths)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("loss", round(loss.item(), 5))


if __name__ == "__main__":
    main()
