"""PyTorch Geometric: graph classification with GCN layers and global pooling."""

import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GCNConv, global_mean_pool


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.head = GCNConv(8, 16), GCNConv(16, 16), nn.Linear(16, 2)

    def forward(self, data):
        x = self.first(data.x, data.edge_index).relu()
        x = self.second(x, data.edge_index).relu()
        return self.head(global_mean_pool(x, data.batch))


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    graphs = [
        Data(x=torch.randn(10, 8), edge_index=torch.randint(0, 10, (2, 30)), y=torch.tensor([each % 2]))
        for each in range(40)
    ]
    model = Net().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(2):
        total = 0.0
        for data in DataLoader(graphs, batch_size=8):
            data = data.to(device)
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(data), data.y)
            loss.backward()
            optimizer.step()
            total += loss.item() * data.num_graphs
        print("loss", total / len(graphs))


if __name__ == "__main__":
    main()
