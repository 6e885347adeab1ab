"""torchao: a model quantized to 8-bit weights, which then infers batch by batch."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchao.quantization import Int8WeightOnlyConfig, quantize_


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 8)).to(device).eval()
    quantize_(model, Int8WeightOnlyConfig())
    total = 0.0
    with torch.inference_mode():
        for (x,) in DataLoader(TensorDataset(torch.randn(24, 32)), batch_size=4):
            total += model(x.to(device)).abs().sum().item()
    print("sum", total)


if __name__ == "__main__":
    main()
