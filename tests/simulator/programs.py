"""Small training programs that print their losses, to be run with and without simulated devices.

    python -m tests.simulator.programs simulated
    python -m tests.simulator.programs plain

Each program takes the device from `torch.cuda.is_available()`, as users' scripts do.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


def device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def cnn() -> list[float]:
    """Convolutions, batch normalisation, dropout, shuffling, augmentation on the device, a scheduler."""
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3),
        nn.GELU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.3),
        nn.Linear(32, 10),
    ).to(device())
    data = TensorDataset(torch.randn(48, 3, 12, 12), torch.randint(0, 10, (48,)))
    loader = DataLoader(data, 16, shuffle=True, pin_memory=torch.cuda.is_available())
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    losses = []
    for _epoch in range(2):
        for x, y in loader:
            x = x.to(device(), non_blocking=True)
            x = x + 0.1 * torch.randn_like(x)
            loss = F.cross_entropy(model(x), y.to(device()))
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
        scheduler.step()
    model.eval()
    with torch.no_grad():
        losses.append(model(data.tensors[0].to(device())).sum().item())
    return losses


def lstm() -> list[float]:
    """A language model on an LSTM whose state is carried from one piece of text to the next."""

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(20, 16)
            self.lstm = nn.LSTM(16, 24, 2, dropout=0.2, batch_first=True)
            self.head = nn.Linear(24, 20)

        def forward(self, x, state):
            out, state = self.lstm(self.embedding(x), state)
            return self.head(out), state

    model = Model().to(device())
    text = torch.randint(0, 20, (4, 33)).to(device())
    optimizer = torch.optim.SGD(model.parameters(), 1.0, momentum=0.9)
    state = None
    losses = []
    for start in range(0, 32, 8):
        out, state = model(text[:, start : start + 8], state)
        loss = F.cross_entropy(out.flatten(0, 1), text[:, start + 1 : start + 9].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        state = tuple(part.detach() for part in state)
        losses.append(loss.item())
    return losses


def recurrent() -> list[float]:
    """GRU, plain RNN, a bidirectional LSTM on packed sequences, and cells in a loop."""
    gru, rnn = nn.GRU(6, 8, 2), nn.RNN(6, 8, nonlinearity="relu")
    packed = nn.LSTM(6, 8, bidirectional=True)
    cell, gated = nn.LSTMCell(6, 8), nn.GRUCell(6, 8)
    modules = nn.ModuleList([gru, rnn, packed, cell, gated]).to(device())
    optimizer = torch.optim.RMSprop(modules.parameters(), 1e-2)
    losses = []
    for _step in range(3):
        x = torch.randn(5, 3, 6).to(device())
        sequence = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([5, 4, 2]))
        out = nn.utils.rnn.pad_packed_sequence(packed(sequence)[0])[0]
        h, c = torch.zeros(2, 3, 8, device=device())
        g = torch.zeros(3, 8, device=device())
        for piece in x:
            h, c = cell(piece, (h, c))
            g = gated(piece, g)
        loss = gru(x)[0].pow(2).mean() + rnn(x)[0].mean() + out.pow(2).mean() + h.mean() + g.pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def gan() -> list[float]:
    """Two networks and two optimizers, with noise made on the device."""
    generator = nn.Sequential(nn.Linear(4, 16), nn.LeakyReLU(0.2), nn.Linear(16, 8), nn.Tanh()).to(device())
    critic = nn.Sequential(nn.Linear(8, 16), nn.LeakyReLU(0.2), nn.Dropout(0.2), nn.Linear(16, 1)).to(device())
    first = torch.optim.Adam(generator.parameters(), 1e-2, betas=(0.5, 0.999))
    second = torch.optim.Adam(critic.parameters(), 1e-2, betas=(0.5, 0.999))
    criterion = nn.BCEWithLogitsLoss()
    losses = []
    for _step in range(4):
        real = torch.rand(6, 8).to(device())
        fake = generator(torch.randn(6, 4, device=device()))
        ones, zeros = torch.ones(6, 1, device=device()), torch.zeros(6, 1, device=device())
        loss = criterion(critic(real), ones) + criterion(critic(fake.detach()), zeros)
        second.zero_grad()
        loss.backward()
        second.step()
        losses.append(loss.item())
        loss = criterion(critic(fake), ones)
        first.zero_grad()
        loss.backward()
        first.step()
        losses.append(loss.item())
    return losses


def transformer() -> list[float]:
    """An encoder with a mask, positions and label smoothing, in single precision."""
    embedding = nn.Embedding(30, 16)
    layer = nn.TransformerEncoderLayer(16, 4, 32, 0.1, batch_first=True, activation="gelu")
    encoder, head = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(16, 30)
    modules = nn.ModuleList([embedding, encoder, head]).to(device())
    mask = nn.Transformer.generate_square_subsequent_mask(10).to(device())
    optimizer = torch.optim.AdamW(modules.parameters(), 1e-2)
    losses = []
    for _step in range(3):
        x = torch.randint(0, 30, (4, 10)).to(device())
        out = head(encoder(embedding(x), mask=mask, is_causal=True))
        loss = F.cross_entropy(out[:, :-1].reshape(-1, 30), x[:, 1:].reshape(-1), label_smoothing=0.1)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def accumulation() -> list[float]:
    """Gradients of several batches in one step, checkpointing, and an average of the weights."""
    from torch.utils.checkpoint import checkpoint

    model = nn.Sequential(nn.Linear(6, 16), nn.Dropout(0.5), nn.Linear(16, 2)).to(device())
    average = torch.optim.swa_utils.AveragedModel(model)
    loader = DataLoader(TensorDataset(torch.randn(24, 6), torch.randint(0, 2, (24,))), 4, shuffle=True)
    optimizer = torch.optim.SGD(model.parameters(), 0.5)
    losses = []
    for index, (x, y) in enumerate(loader):
        x, y = x.to(device()), y.to(device())
        loss = F.cross_entropy(checkpoint(model, x, use_reentrant=False), y) / 3
        loss.backward()
        losses.append(loss.item())
        if index % 3 == 2:
            optimizer.step()
            optimizer.zero_grad()
            average.update_parameters(model)
    losses.extend(parameter.sum().item() for parameter in average.parameters())
    return losses


def mixed() -> list[float]:
    """Linear layers in bfloat16; what autocast does to them is the same on both devices."""
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).to(device())
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    losses = []
    for _step in range(3):
        x = torch.randn(4, 8).to(device())
        with torch.autocast(device().type, dtype=torch.bfloat16):
            loss = model(x).float().pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


PROGRAMS: tuple[Callable[[], list[float]], ...] = (
    cnn,
    lstm,
    recurrent,
    gan,
    transformer,
    accumulation,
    mixed,
)


def main(mode: str) -> None:
    if mode == "simulated":
        import devlint.simulator

        devlint.simulator.install()
    result = {}
    for program in PROGRAMS:
        torch.manual_seed(0)
        result[program.__name__] = [loss.hex() for loss in program()]
    sys.stdout.write(json.dumps({"device": str(device()), "losses": result}))


if __name__ == "__main__":
    main(sys.argv[1])
