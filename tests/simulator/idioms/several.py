"""Several devices in one process."""

from __future__ import annotations

import torch
from torch import nn
from torch.cuda import comm as cuda_comm
from torch.nn.parallel import comm

from tests.simulator.idioms import Table

idiom = Table()


@idiom("a model on the second device")
def _() -> None:
    module = nn.Linear(3, 3).to("cuda:1")
    out = module(torch.randn(2, 3).to("cuda:1"))
    assert out.device == torch.device("cuda:1")
    out.sum().backward()
    assert module.weight.grad is not None
    assert module.weight.grad.device.index == 1


@idiom("a model on two devices")
def _() -> None:
    first, second = nn.Linear(3, 3).to("cuda:0"), nn.Linear(3, 3).to("cuda:1")
    second(first(torch.randn(2, 3, device="cuda:0")).to("cuda:1")).sum().backward()
    assert first.weight.grad is not None
    assert first.weight.grad.device.index == 0


@idiom("DataParallel on one device")
def _() -> None:
    module = nn.DataParallel(nn.Linear(3, 3).cuda(), device_ids=[0])
    module(torch.randn(2, 3).cuda()).sum().backward()
    assert module.module.weight.grad is not None


@idiom("DataParallel on two devices computes what one device computes")
def _() -> None:
    seen: list[tuple[int, int]] = []

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(3, 2)
            self.register_buffer("scale", torch.tensor(2.0))

        def forward(self, x: torch.Tensor, *, shift: torch.Tensor, flag: bool = False) -> dict[str, torch.Tensor]:
            assert x.device == shift.device == self.inner.weight.device == self.scale.device
            assert torch.cuda.current_device() == x.get_device()
            assert flag
            seen.append((x.get_device(), len(x)))
            return {"out": self.inner(x) * self.scale + shift}

    net = Net().cuda()
    x, shift = torch.randn(5, 3), torch.randn(5, 2)
    expected = net(x.cuda(), shift=shift.cuda(), flag=True)["out"]
    expected.sum().backward()
    gradient = net.inner.weight.grad
    assert gradient is not None
    net.zero_grad()
    seen.clear()
    for inputs in ((x, shift), (x.cuda(), shift.cuda())):
        net.zero_grad()
        out = nn.DataParallel(net)(inputs[0], shift=inputs[1], flag=True)["out"]
        assert out.device == torch.device("cuda:0")
        assert torch.allclose(out, expected)
        out.sum().backward()
        assert net.inner.weight.grad is not None
        assert torch.allclose(net.inner.weight.grad, gradient)
    assert sorted(seen) == [(0, 3), (0, 3), (1, 2), (1, 2)]


@idiom("DataParallel with batch normalisation, autocast and an output device")
def _() -> None:
    net = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)).cuda()
    parallel = nn.DataParallel(net, device_ids=[0, 1], output_device=1)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        out = parallel(torch.randn(8, 3))
    assert out.device.index == 1
    out.sum().backward()
    assert net[1].num_batches_tracked.item() == 1
    assert parallel.state_dict()["module.0.weight"].is_cuda


@idiom("an error in a replica names the replica", raises="Caught RuntimeError in replica 0 on device 0")
def _() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(3, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner(x.cpu())

    nn.DataParallel(Net().cuda())(torch.randn(4, 3))


@idiom("scatter, gather, broadcast, reduce")
def _() -> None:
    x = torch.arange(6.0, device="cuda:0", requires_grad=True)
    pieces = nn.parallel.scatter(x, [0, 1])
    assert [piece.tolist() for piece in pieces] == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    whole = nn.parallel.gather(pieces, "cuda:1")
    assert whole.device.index == 1
    whole.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [1.0] * 6
    assert comm.gather([piece.detach() for piece in pieces], destination="cpu").device.type == "cpu"
    copies = cuda_comm.broadcast(x.detach(), [0, 1])
    assert [copy.get_device() for copy in copies] == [0, 1]
    assert comm.reduce_add(copies, 1).tolist() == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    assert comm.reduce_add_coalesced([[copies[0]], [copies[1]]])[0].device.index == 0
    assert comm.scatter(torch.arange(5), [0, 1], chunk_sizes=[2, 3])[1].tolist() == [2, 3, 4]
    nn.parallel.data_parallel(nn.Linear(6, 2).cuda(), torch.ones(4, 6), [0, 1]).sum().backward()


@idiom("NCCL in one process")
def _() -> None:
    from torch.cuda import nccl

    tensors = [torch.ones(2, device="cuda:0"), torch.full((2,), 2.0, device="cuda:1")]
    assert nccl.is_available(tensors)
    assert nccl.version() >= (2, 0, 0)
    nccl.all_reduce(tensors)
    assert [tensor.tolist() for tensor in tensors] == [[3.0, 3.0], [3.0, 3.0]]


@idiom("replicas of a module")
def _() -> None:
    replicas = nn.parallel.replicate(nn.Linear(2, 2).cuda(), [0, 1])
    assert [replica.weight.device.index for replica in replicas] == [0, 1]


@idiom("copies between devices")
def _() -> None:
    x = torch.ones(2, device="cuda:0")
    y = torch.zeros(2, device="cuda:1")
    y.copy_(x)
    assert y.tolist() == [1.0, 1.0]
    x.copy_(torch.zeros(2), non_blocking=True)
    assert x.sum().item() == 0
    torch.zeros(2).copy_(y)


@idiom("synchronised batch normalisation is converted")
def _() -> None:
    module = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4))).cuda()
    assert isinstance(module[1], nn.SyncBatchNorm)
    assert module[1].weight.is_cuda
    assert module.eval()(torch.randn(1, 3, 8, 8, device="cuda")).is_cuda
