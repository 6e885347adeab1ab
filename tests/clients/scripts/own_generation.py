"""A loop that samples from a small recurrent network, one token at a time."""

import torch
from torch import nn


class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.rnn, self.head = nn.Embedding(20, 16), nn.GRU(16, 32, batch_first=True), nn.Linear(32, 20)

    def forward(self, tokens, state=None):
        found, state = self.rnn(self.embedding(tokens), state)
        return self.head(found[:, -1]), state


@torch.no_grad()
def generate(model, device, length):
    tokens, state = [0], None
    for _ in range(length):
        logits, state = model(torch.tensor([[tokens[-1]]], device=device), state)
        tokens.append(logits.argmax(-1).item())
    return tokens


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Language().to(device).eval()
    for _ in range(3):
        print("tokens", *generate(model, device, 12))


if __name__ == "__main__":
    main()
