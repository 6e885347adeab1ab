"""One of two processes that train together: on simulated devices with the backend "nccl", or on the CPU with gloo.

    python -m tests.simulator.ranks simulated RANK FILE

The ranks meet in FILE; each prints what it saw as JSON.
"""

from __future__ import annotations

import json
import os
import sys

import torch
import torch.distributed as dist
from torch import nn

WORLD = 2


def raised(call, *args) -> str:
    try:
        call(*args)
    except Exception as error:
        return str(error)
    return ""


def collectives(rank: int) -> dict[str, object]:
    """What each collective brings."""
    x = torch.full((2,), rank + 1.0, device="cuda")
    dist.all_reduce(x)
    seen: dict[str, object] = {"sum": [x.tolist(), str(x.device)]}
    parts = [torch.zeros(1, device="cuda") for _ in range(WORLD)]
    dist.all_gather(parts, torch.tensor([float(rank)], device="cuda"))
    seen["gathered"] = [part.item() for part in parts]
    x = torch.tensor([rank + 5.0], device="cuda")
    dist.broadcast(x, src=1)
    seen["broadcast"] = x.item()
    dist.barrier()
    objects: list[object] = [None] * WORLD
    dist.all_gather_object(objects, {"rank": rank})
    seen["objects"] = objects
    seen["refused"] = raised(dist.all_reduce, torch.ones(1))
    return seen


def synchronised(rank: int) -> bool:
    """Whether a piece of a batch is normalised, and its gradient computed, as in the whole batch."""
    whole, grads = torch.arange(30.0).sin().view(5, 3, 2), torch.arange(30.0).cos().view(5, 3, 2)
    pieces = slice(0, 2) if rank == 0 else slice(2, 5)
    reference, norm = nn.BatchNorm1d(3), nn.SyncBatchNorm(3).cuda()
    x, y = whole.clone().requires_grad_(), whole[pieces].cuda().requires_grad_()
    expected, out = reference(x), norm(y)
    expected.backward(grads)
    out.backward(grads[pieces].cuda())
    pairs = [(out, expected[pieces]), (y.grad, x.grad[pieces])]
    pairs += [(norm.running_mean, reference.running_mean), (norm.running_var, reference.running_var)]
    return all(torch.allclose(one.cpu(), other, atol=1e-6) for one, other in pairs)


def training(rank: int, device: torch.device) -> list[str]:
    """The weights of a model after three steps on different data."""
    torch.manual_seed(rank)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 1)).to(device)
    model = nn.parallel.DistributedDataParallel(model, device_ids=[rank] if device.type == "cuda" else None)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step in range(3):
        torch.manual_seed(10 * step + rank)
        optimizer.zero_grad()
        model(torch.randn(4, 3).to(device)).pow(2).mean().backward()
        optimizer.step()
    return [value.hex() for value in model.module[0].weight.flatten().tolist()]


def sharded(rank: int, device: torch.device) -> dict[str, object]:
    """A model of which each rank has a part, and its weights after three steps."""
    from torch.distributed.fsdp import fully_shard

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2)).to(device)
    fully_shard(model)
    weight = model[0].weight
    seen: dict[str, object] = {"device": str(weight.device), "is_cuda": weight.is_cuda}
    optimizer = torch.optim.Adam(model.parameters(), 0.1)
    for step in range(3):
        torch.manual_seed(step)
        optimizer.zero_grad()
        model(torch.randn(4, 4).to(device)).pow(2).mean().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    seen["weights"] = [value.hex() for value in weight.full_tensor().flatten().tolist()]
    model[0].reset_parameters()
    seen["drawn"] = weight.to_local().std().item() > 0
    with torch.device("meta"):
        model = nn.Sequential(nn.Linear(4, 4))
    fully_shard(model)
    model.to_empty(device=device)
    seen["memory"] = str(model[0].weight.to_local().device)
    return seen


def main(mode: str, rank: int, path: str) -> None:
    if mode == "simulated":
        import devlint.simulator

        devlint.simulator.install(devices=WORLD)
        torch.cuda.set_device(rank)
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend, init_method=f"file://{path}", rank=rank, world_size=WORLD)
    seen: dict[str, object] = {"backend": dist.get_backend(), "available": dist.is_nccl_available()}
    if mode == "simulated":
        seen["collectives"] = collectives(rank)
        seen["synchronised"] = synchronised(rank)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    seen["weights"] = training(rank, device)
    seen["sharded"] = sharded(rank, device)
    sys.stdout.write(json.dumps(seen))
    sys.stdout.flush()
    dist.barrier()
    os._exit(0)  # threads of gloo sometimes abort a process that takes itself down in order


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
