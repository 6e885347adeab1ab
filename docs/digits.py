import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
images, labels = torch.rand(1280, 1, 28, 28), torch.randint(10, (1280,))
loader = DataLoader(TensorDataset(images, labels), batch_size=64, shuffle=True)
model = nn.Sequential(nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10)).to(device)
optimizer = torch.optim.Adam(model.parameters())
weight = torch.linspace(0.5, 1.5, 10)

model.train()
for x, y in loader:
    loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device), weight.to(device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"loss {loss.item():.3f}")

model.eval()
with torch.no_grad():
    right = sum((model(x.to(device)).argmax(1).cpu() == y).sum() for x, y in loader)
print(f"accuracy {right / len(images):.2f}")
