"""pytorch-metric-learning: a triplet loss with a miner, and a memory of embeddings."""

import torch
from pytorch_metric_learning import losses, miners
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 8)).to(device)
    miner = miners.MultiSimilarityMiner()
    triplets = losses.TripletMarginLoss()
    memory = losses.CrossBatchMemory(losses.ContrastiveLoss(), embedding_size=8, memory_size=32)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    data = TensorDataset(torch.randn(64, 10), torch.arange(64) % 4)
    for x, labels in DataLoader(data, batch_size=16):
        x, labels = x.to(device), labels.to(device)
        embeddings = model(x)
        loss = triplets(embeddings, labels, miner(embeddings, labels)) + memory(embeddings, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("loss", loss.item())


if __name__ == "__main__":
    main()
