"""Two spawned processes that train one after the other, and tell their losses through a queue."""

import torch
from torch import multiprocessing, nn


def train(rank, device, queue):
    torch.manual_seed(rank)
    model = nn.Linear(8, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(4):
        x = torch.randn(4, 8).to(device)
        loss = model(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    queue.put((rank, losses))


def main():
    context = multiprocessing.get_context("spawn")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    queue = context.Queue()
    for rank in range(2):
        process = context.Process(target=train, args=(rank, device, queue))
        process.start()
        print("losses", *queue.get())
        process.join()


if __name__ == "__main__":
    main()
