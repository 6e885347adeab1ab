"""DistributedDataParallel under audit, long enough to meet a deadlock of the interpreter lock with one of torch's.

The reducer copies gradients from the threads of the autograd engine while it holds a lock of its own, and our kernels
need the interpreter lock there.  ``python -m tests.gpu`` starts this file in several processes and waits for it.
"""

from __future__ import annotations

import os
import subprocess
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from tests.gpu.processes import finish, last_line

STEPS, LAYERS, SECONDS = 300, 40, 95


def soak(processes: int, backend: str) -> str:
    """How it ended: ``ok``, that it was not done in time, or the last line of what went wrong."""
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    audit = ["-m", "devlint", "audit", "--isolated", "--exit-zero", "-q", __file__, backend]
    try:
        result = finish([*launch, *audit], SECONDS)
    except subprocess.TimeoutExpired:
        return f"deadlock, or slower than {SECONDS} seconds"
    return "ok" if result.returncode == 0 else last_line(result.stderr)


def train(backend: str) -> None:
    """Many small layers in small buckets, parameters on the device and half of the inputs moved in the forward pass."""
    dist.init_process_group(backend)
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    torch.cuda.set_device(device)
    layers = (layer for _ in range(LAYERS) for layer in (nn.Linear(128, 128), nn.ReLU()))
    model = DistributedDataParallel(nn.Sequential(*layers).to(device), device_ids=[device.index], bucket_cap_mb=0.1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(STEPS):
        loss = model(torch.randn(32, 128).to(device)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()
    dist.destroy_process_group()


if __name__ == "__main__":
    train(sys.argv[1])
