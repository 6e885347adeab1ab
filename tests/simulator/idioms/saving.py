"""Checkpoints, pickles, other processes."""

from __future__ import annotations

import io
import multiprocessing
import pickle
import tempfile
from typing import Any

import torch
from torch import nn

from tests.simulator.idioms import Table

idiom = Table()
d = "cuda"


def loaded(value: Any, **options: Any) -> Any:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    buffer.seek(0)
    return torch.load(buffer, **options)


@idiom("a checkpoint is loaded where it was saved")
def _() -> None:
    assert loaded(torch.ones(2, device="cuda:1")).device.index == 1
    assert loaded({"a": [torch.ones(2, device=d), torch.ones(2)]})["a"][0].is_cuda
    assert not loaded({"a": [torch.ones(2, device=d), torch.ones(2)]})["a"][1].is_cuda
    assert loaded(torch.ones(2, device=d)).tolist() == [1.0, 1.0]


@idiom("map_location in every form")
def _() -> None:
    x = torch.arange(3.0, device="cuda:1")
    for location, device in (
        ("cpu", "cpu"),
        (torch.device("cpu"), "cpu"),
        ("cuda", "cuda:0"),
        ("cuda:1", "cuda:1"),
        (torch.device("cuda", 0), "cuda:0"),
        ({"cuda:1": "cuda:0"}, "cuda:0"),
        ({"cuda:1": "cpu"}, "cpu"),
        ({"cuda:0": "cpu"}, "cuda:1"),
        (lambda storage, location: storage, "cpu"),
        (lambda storage, location: storage.cuda(0), "cuda:0"),
        (lambda storage, location: storage.cuda(1), "cuda:1"),
        (lambda storage, location: None, "cuda:1"),
    ):
        y = loaded(x, map_location=location)
        assert str(y.device) == device, (location, y.device)
        assert y.tolist() == [0.0, 1.0, 2.0]
    assert loaded(torch.ones(2), map_location="cuda").is_cuda


@idiom("state of modules and optimizers")
def _() -> None:
    module = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)).cuda()
    optimizer = torch.optim.Adam(module.parameters())
    module(torch.randn(4, 3, device=d)).sum().backward()
    optimizer.step()
    state = loaded({"model": module.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}, weights_only=True)
    assert state["model"]["0.weight"].is_cuda
    fresh = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)).cuda()
    fresh.load_state_dict(state["model"])
    assert torch.equal(fresh[0].weight, module[0].weight)
    other = torch.optim.Adam(fresh.parameters())
    other.load_state_dict(state["optimizer"])
    assert other.state[fresh[0].weight]["exp_avg"].is_cuda
    on_host = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    on_host.load_state_dict(state["model"])
    assert not on_host[0].weight.is_cuda
    fresh.load_state_dict(loaded(module.state_dict(), map_location="cpu"))
    assert fresh[0].weight.is_cuda
    fresh.load_state_dict(nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)).state_dict(), assign=True)
    assert not fresh[0].weight.is_cuda


@idiom("whole modules")
def _() -> None:
    module = nn.Linear(3, 3).cuda()
    same = loaded(module, weights_only=False)
    assert isinstance(same.weight, nn.Parameter)
    assert same.weight.is_cuda
    assert same.weight.requires_grad
    assert torch.equal(same.weight, module.weight)
    assert not loaded(module, weights_only=False, map_location="cpu").weight.is_cuda


@idiom("shared memory is saved once and shared again")
def _() -> None:
    x = torch.zeros(1000, device=d)
    buffer = io.BytesIO()
    torch.save([x, x[:10], x.view(10, 100)], buffer)
    assert buffer.tell() < 2 * 4000
    a, b, c = loaded([x, x[:10], x.view(10, 100)])
    a[0] = 5
    assert b[0].item() == c[0, 0].item() == 5


@idiom("the older format, pickle, and views")
def _() -> None:
    x = torch.arange(6.0, device="cuda:1").view(2, 3)
    buffer = io.BytesIO()
    torch.save({"x": x}, buffer, _use_new_zipfile_serialization=False)
    buffer.seek(0)
    assert torch.load(buffer, map_location={"cuda:1": "cuda:0"})["x"].device.index == 0
    y = pickle.loads(pickle.dumps(x.t()))
    assert y.device.index == 1
    assert y.stride() == (1, 3)
    assert y.tolist() == x.t().tolist()
    p = pickle.loads(pickle.dumps(nn.Parameter(x)))
    assert isinstance(p, nn.Parameter)
    assert p.is_cuda
    device = pickle.loads(pickle.dumps(x.device))
    assert device == torch.device("cuda:1")
    generator = torch.Generator(device=d).manual_seed(3)
    assert generator.device.type == "cuda"


@idiom("state of random numbers in a checkpoint")
def _() -> None:
    state = loaded({"cpu": torch.get_rng_state(), "cuda": torch.cuda.get_rng_state_all()})
    torch.set_rng_state(state["cpu"])
    torch.cuda.set_rng_state_all(state["cuda"])
    assert len(state["cuda"]) == 2


def _use_cuda(queue: Any) -> None:
    try:
        torch.zeros(2).cuda()
    except RuntimeError as error:
        queue.put(str(error))
    try:
        torch.zeros(2, device="cuda")
    except RuntimeError as error:
        queue.put(str(error))
    queue.put((torch.cuda.is_initialized(), torch.ones(2).sum().item()))


@idiom("CUDA in a forked child")
def _() -> None:
    torch.cuda.init()
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_use_cuda, args=(queue,))
    child.start()
    refused = "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the "
    assert queue.get(timeout=120).startswith(refused)
    assert queue.get(timeout=120).startswith(refused)
    assert queue.get(timeout=120) == (False, 2.0)
    child.join()


class _Moves(torch.utils.data.Dataset):  # type: ignore[type-arg]  # of tensors
    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.ones(2).cuda()


@idiom("a data set that uses CUDA in a worker", raises="Cannot re-initialize CUDA in forked subprocess")
def _() -> None:
    list(torch.utils.data.DataLoader(_Moves(), num_workers=1))


@idiom("tensors of the device through a queue")
def _() -> None:
    queue = torch.multiprocessing.get_context("fork").Queue()
    x = torch.arange(3.0, device="cuda:1")
    queue.put([x, nn.Parameter(x)])
    y, p = queue.get(timeout=120)
    assert y.device == x.device
    assert y.tolist() == [0.0, 1.0, 2.0]
    assert isinstance(p, nn.Parameter)
    assert x.device.index == 1
    assert loaded(x).device.index == 1


@idiom("a file of safetensors, read on the host into pinned memory and copied")
def _() -> None:
    """What safetensors 0.8 calls for a CUDA device; with the library itself where it is installed."""
    staging = torch.empty((3,), dtype=torch.float32, device="cpu", pin_memory=True)
    assert staging.is_pinned()
    assert staging.to(device="cuda:1").device.index == 1
    try:
        from safetensors import safe_open
        from safetensors.torch import load_file, save_file
    except ImportError:
        return
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/weights.safetensors"
        save_file({"weight": torch.arange(6.0, device=d).view(2, 3)}, path)
        for device, index in (("cuda", 0), ("cuda:0", 0), ("cuda:1", 1), (1, 1)):
            weight = load_file(path, device=device)["weight"]
            assert weight.device == torch.device("cuda", index)
            assert weight.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
            with safe_open(path, "pt", device=device) as file:
                assert file.get_tensor("weight").device == weight.device
                assert file.get_slice("weight")[1:].tolist() == [[3.0, 4.0, 5.0]]


@idiom("only the host's memory is pinned", raises="Only dense CPU tensors can be pinned")
def _() -> None:
    torch.empty(3, device=d, pin_memory=True)
