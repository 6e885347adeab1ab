"""DeepSpeed: an engine of ZeRO stage 0 on one rank, with accumulated gradients."""

import os

import torch
from torch import nn

os.environ.update({"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"})

import deepspeed  # it looks at the environment

CONFIG = {
    "train_micro_batch_size_per_gpu": 4,
    "gradient_accumulation_steps": 2,
    "gradient_clipping": 1.0,
    "zero_optimization": {"stage": 0},
    "zero_allow_untested_optimizer": True,
}


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=CONFIG)
    for _ in range(8):
        x, y = torch.randn(4, 8).to(engine.device), torch.randint(0, 2, (4,)).to(engine.device)
        loss = nn.functional.cross_entropy(engine(x), y)
        engine.backward(loss)
        engine.step()
        print("loss", loss.item())


if __name__ == "__main__":
    main()
