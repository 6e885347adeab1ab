"""Small pieces of code that copy or wait in as many ways as training code does."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

DEVICE = "cuda"


@dataclass(frozen=True, slots=True)
class Scenario:
    """``run`` is what is measured, and is called once before.

    ``hidden`` counts the copies to the host which a kernel makes by itself, below torch's operators: the audit reports
    a sync there and no copy.  ``blind`` says why the audit sees nothing at all of what the profiler sees.
    """

    name: str
    run: Callable[[], object]
    hidden: int = 0
    blind: str = ""


def _to_device() -> list[Scenario]:
    host = torch.randn(256, 256)
    pinned = host.pin_memory()
    array = host.numpy()
    target = torch.empty(256, 256, device=DEVICE)
    return [
        Scenario("pageable, blocking", lambda: host.to(DEVICE)),
        Scenario("pageable, non_blocking", lambda: host.to(DEVICE, non_blocking=True)),
        Scenario("pinned, blocking", lambda: pinned.to(DEVICE)),
        Scenario("pinned, non_blocking", lambda: pinned.to(DEVICE, non_blocking=True)),
        Scenario("transposed", lambda: host.t().to(DEVICE)),
        Scenario("pinned with gaps", lambda: pinned[:, ::2].to(DEVICE, non_blocking=True)),
        Scenario("another dtype, blocking", lambda: host.to(DEVICE, torch.float16)),
        Scenario("another dtype, pinned, non_blocking", lambda: pinned.to(DEVICE, torch.float16, non_blocking=True)),
        Scenario(".cuda()", lambda: host.cuda()),
        Scenario("copy_ into a tensor", lambda: target.copy_(host)),
        Scenario("copy_ with a broadcast row", lambda: target.copy_(host[0])),
        Scenario("torch.tensor of a list", lambda: torch.tensor([1.0, 2.0, 3.0], device=DEVICE)),
        Scenario("torch.as_tensor of an array", lambda: torch.as_tensor(array, device=DEVICE)),
        Scenario("new_tensor", lambda: target.new_tensor([1.0, 2.0])),
        Scenario("type_as", lambda: host.type_as(target)),
        Scenario("a module", lambda: nn.Linear(8, 8).to(DEVICE)),
        Scenario("the storage", lambda: host.untyped_storage().cuda()),
        Scenario("a scalar operand on the host", lambda: target * torch.tensor(2.0)),
        Scenario("a value set by index", lambda: target.__setitem__((0, 0), 1.0)),
        Scenario("a row set from the host", lambda: target.__setitem__(0, torch.zeros(256))),
    ]


def _to_host() -> list[Scenario]:
    x = torch.randn(256, 256, device=DEVICE)
    vector = torch.arange(8, device=DEVICE)
    landing = torch.empty(256, 256).pin_memory()
    pageable = torch.empty(256, 256)
    return [
        Scenario(".cpu()", lambda: x.cpu()),
        Scenario("to the host, non_blocking", lambda: x.to("cpu", non_blocking=True)),
        Scenario("copy_ into pinned memory, non_blocking", lambda: landing.copy_(x, non_blocking=True)),
        Scenario("copy_ into pageable memory, non_blocking", lambda: pageable.copy_(x, non_blocking=True)),
        Scenario("transposed to the host", lambda: x.t().cpu()),
        Scenario("numpy", lambda: x.cpu().numpy()),
        Scenario("item", lambda: x.sum().item()),
        Scenario("float, int, bool", lambda: (float(x[0, 0]), int(vector[3]), bool(x[0, 0] > 0))),
        Scenario("tolist", lambda: vector.tolist()),
        Scenario("repr", lambda: repr(vector)),
        Scenario("a formatted scalar", lambda: f"{x.mean():.3f}"),
        Scenario("a tensor as an index of a list", lambda: list(range(10))[vector[2]]),
        Scenario("equal", lambda: torch.equal(x, x + 1)),
        Scenario("allclose", lambda: torch.allclose(x, x)),
        Scenario("no copy: already there", lambda: x.to(DEVICE)),
        Scenario("no copy: clone, contiguous, cast", lambda: (x.clone(), x.t().contiguous(), x.half())),
    ]


def _indexing() -> list[Scenario]:
    x = torch.randn(256, 256, device=DEVICE)
    rows = torch.tensor([1, 2, 3])
    values = torch.tensor([1.0], device=DEVICE)
    return [
        Scenario("an index on the host", lambda: x[rows]),
        Scenario("a list as index", lambda: x[[1, 2, 3]]),
        Scenario("a mask", lambda: x[x > 0], hidden=1),
        Scenario("assignment to a mask", lambda: x.__setitem__(x > 3, 0.0)),
        Scenario("assignment of a tensor to a mask", lambda: x.__setitem__(x > 3, values), hidden=1),
        Scenario("nonzero", lambda: x.nonzero(), hidden=1),
        Scenario("where with one argument", lambda: torch.where(x > 0), hidden=1),
        Scenario("masked_select", lambda: torch.masked_select(x, x > 0), hidden=1),
    ]


def _inside() -> list[Scenario]:
    x = torch.randn(256, device=DEVICE)
    counts = torch.tensor([1, 2, 3], device=DEVICE)
    return [
        Scenario("unique", lambda: torch.unique(counts), hidden=1),
        Scenario("unique_consecutive", lambda: torch.unique_consecutive(counts), hidden=1),
        Scenario("topk and sort", lambda: (x.topk(3), x.sort())),
        Scenario("multinomial", lambda: torch.multinomial(x.abs(), 3)),
        Scenario("bincount", lambda: torch.bincount(counts)),
        Scenario("one_hot", lambda: F.one_hot(counts)),
        Scenario("repeat_interleave by a tensor", lambda: counts.repeat_interleave(counts)),
        Scenario("torch.cuda.synchronize", lambda: torch.cuda.synchronize()),
        Scenario("an event", lambda: _event().synchronize()),
        Scenario("a stream", lambda: torch.cuda.current_stream().synchronize()),
    ]


def _event() -> torch.cuda.Event:
    event = torch.cuda.Event()
    event.record()
    return event


def _training() -> list[Scenario]:
    model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters())
    scaler = torch.amp.GradScaler(DEVICE)
    x = torch.randn(32, 256, device=DEVICE)
    y = torch.randint(10, (32,), device=DEVICE)
    weight = torch.randn(64, 64, requires_grad=True)
    loader = DataLoader(TensorDataset(torch.randn(64, 16)), batch_size=16, pin_memory=True)
    lstm = nn.LSTM(16, 16).to(DEVICE)

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    def mixed() -> None:
        optimizer.zero_grad()
        with torch.autocast(DEVICE, dtype=torch.float16):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    def loaded() -> None:
        for (batch,) in loader:
            batch.to(DEVICE, non_blocking=True)

    def packed() -> None:
        lengths = torch.tensor([5, 3])
        sequence = nn.utils.rnn.pack_padded_sequence(torch.randn(5, 2, 16, device=DEVICE), lengths)
        lstm(sequence)

    return [
        Scenario("forward, backward, Adam", step),
        Scenario("GradScaler", mixed),
        Scenario("a leaf on the host moved in forward", lambda: (weight.to(DEVICE) * 2).sum().backward()),
        Scenario("back to the host in forward", lambda: (weight.to(DEVICE) * 2).cpu().sum().backward()),
        Scenario("a pinned loader", loaded),
        Scenario("clip_grad_norm_ read", lambda: nn.utils.clip_grad_norm_(model.parameters(), 1.0).item()),
        Scenario("a packed sequence", packed),
        Scenario("a checkpoint saved", lambda: torch.save(model.state_dict(), io.BytesIO())),
        Scenario("a state dict from the host", lambda: model.load_state_dict(_on_host(model))),
    ]


def _on_host(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: torch.zeros(value.shape) for name, value in model.state_dict().items()}


def _elsewhere() -> list[Scenario]:
    host = torch.randn(256, 256)
    pinned = host.pin_memory()
    target = torch.empty(256, 256, device=DEVICE)
    compiled = torch.compile(lambda a: a.to(DEVICE).sin().sum(), backend="aot_eager")
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        target.copy_(pinned, non_blocking=True)
    found = [
        Scenario("pin_memory", lambda: host.pin_memory()),
        Scenario("a copy in compiled code", lambda: compiled(host)),
        Scenario("a replayed CUDA graph", lambda: graph.replay(), blind="a graph replays below torch's operators"),
    ]
    if torch.cuda.device_count() > 1:
        found.append(Scenario("to another device", lambda: target.to("cuda:1")))
    return found


GROUPS = (_to_device, _to_host, _indexing, _inside, _training, _elsewhere)
"""What makes the scenarios, and puts their tensors on the device; the last group cannot be simulated."""
