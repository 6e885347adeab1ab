"""CUDA graphs and memory pools."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F

from tests.simulator.idioms import Table

idiom = Table()
d = "cuda"
NOT_PERMITTED = "AcceleratorError: CUDA error: operation not permitted when stream is capturing"
UNPINNED = "RuntimeError: Cannot copy between CPU and CUDA tensors during CUDA graph capture unless the CPU tensor is "


def _captured(function: Callable[[torch.Tensor], object]) -> torch.cuda.CUDAGraph:
    """A graph of a function of three numbers; raises what was raised within, not what ends the capture."""
    graph, x, errors = torch.cuda.CUDAGraph(), torch.ones(3, device=d), []
    try:
        with torch.cuda.graph(graph):
            try:
                function(x)
            except Exception as error:
                errors.append(error)
                raise
    except Exception:
        torch.cuda.set_stream(torch.cuda.default_stream())
        raise errors[0] from None
    return graph


@idiom("a graph computes again with the same memory")
def _() -> None:
    x = torch.zeros(3, device=d)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        assert torch.cuda.is_current_stream_capturing()
        y = x * 2 + 1
        z = y.view(3, 1).sum()
    assert not torch.cuda.is_current_stream_capturing()
    for value in (5, 1):
        x.fill_(value)
        graph.replay()
        assert y.tolist() == [2 * value + 1] * 3
        assert z.item() == 3 * (2 * value + 1)


@idiom("a capture computes nothing")
def _() -> None:
    x = torch.ones(2, device=d)
    state = torch.get_rng_state()
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    with torch.cuda.graph(graph):
        x.add_(1)
        y = x * 2
        noise = torch.rand(2, device=d)
    assert x.tolist() == [1, 1]
    assert y.isnan().all()
    assert torch.equal(torch.get_rng_state(), state)
    graph.instantiate()
    graph.replay()
    first = noise.clone()
    graph.replay()
    assert x.tolist() == [3, 3]
    assert y.tolist() == [6, 6]
    assert not torch.equal(noise, first)


@idiom("a whole training step as a graph")
def _() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    eager = copy.deepcopy(model)
    eager_optimizer = torch.optim.SGD(eager.parameters(), lr=0.1, momentum=0.9)
    inputs, target = torch.zeros(5, 4, device=d), torch.zeros(5, 1, device=d)
    graph = torch.cuda.CUDAGraph()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    for step in range(4):
        x, y = torch.randn(5, 4), torch.randn(5, 1)
        inputs.copy_(x)
        target.copy_(y)
        if step == 0:  # the warm-up
            with torch.cuda.stream(side):
                F.mse_loss(model(inputs), target).backward()
                optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            with torch.cuda.graph(graph):
                loss = F.mse_loss(model(inputs), target)
                loss.backward()
                optimizer.step()
        else:
            graph.replay()
        eager_optimizer.zero_grad()
        expected = F.mse_loss(eager(x.cuda()), y.cuda())
        expected.backward()
        eager_optimizer.step()
        assert step == 0 or torch.equal(loss, expected)
    states = zip(model.state_dict().items(), eager.state_dict().values(), strict=True)
    assert [name for (name, value), other in states if not torch.equal(value, other)] == []


@idiom("a graph of inference")
def _() -> None:
    model, x = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).cuda().eval(), torch.randn(2, 3, 8, device=d)
    weight = torch.randn(8, 4, device=d)
    graph = torch.cuda.CUDAGraph()
    with torch.inference_mode():
        with torch.cuda.graph(graph):
            y = torch.einsum("bij,jk->bik", model(x), weight).reshape(-1, 2).t().contiguous()
        x.normal_()
        graph.replay()
        assert torch.equal(y, torch.einsum("bij,jk->bik", model(x), weight).reshape(-1, 2).t())


@idiom("a graph with a sparse tensor")
def _() -> None:
    sparse, x = torch.eye(3, device=d).to_sparse(), torch.ones(3, 2, device=d)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = torch.sparse.mm(sparse, x) + sparse.values().sum()
    assert sparse.values().tolist() == [1, 1, 1]
    x.fill_(2)
    graph.replay()
    assert y.unique().tolist() == [5]


@idiom("graphed callables")
def _() -> None:
    model = nn.Linear(4, 4).cuda()
    eager = copy.deepcopy(model)
    graphed = torch.cuda.make_graphed_callables(model, (torch.randn(2, 4, device=d),))
    for _ in range(3):
        model.zero_grad()
        eager.zero_grad()
        x = torch.randn(2, 4, device=d)
        loss, expected = graphed(x).pow(2).sum(), eager(x).pow(2).sum()
        assert torch.equal(loss, expected)
        loss.backward()
        expected.backward()
        assert torch.equal(model.weight.grad, eager.weight.grad)


@idiom("a recurrent network and its gradient as a graph")
def _() -> None:
    model, x = nn.LSTM(3, 4).cuda(), torch.randn(5, 2, 3, device=d)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = model(x)[0]
        (gradient,) = torch.autograd.grad(out.sum(), model.weight_ih_l0)
    x.normal_()
    graph.replay()
    expected = model(x)[0]
    assert torch.equal(out, expected)
    assert torch.equal(gradient, torch.autograd.grad(expected.sum(), model.weight_ih_l0)[0])


@idiom("autocast, a scaler and a capturable optimizer with a graph")
def _() -> None:
    model, x = nn.Linear(4, 4).cuda(), torch.randn(2, 4, device=d)
    optimizer = torch.optim.Adam(model.parameters(), capturable=True)
    scaler = torch.amp.GradScaler(d)
    graph = torch.cuda.CUDAGraph()
    for step in range(3):
        optimizer.zero_grad(set_to_none=True)
        if step < 2:
            with torch.autocast(d, cache_enabled=False):
                loss = model(x).sum()
            scaler.scale(loss).backward()
        else:
            with torch.cuda.graph(graph):
                with torch.autocast(d, cache_enabled=False):
                    loss = model(x).sum()
                scaler.scale(loss).backward()
            graph.replay()
        scaler.step(optimizer)
        scaler.update()
    assert loss.isfinite()


@idiom("a pinned copy belongs to the graph")
def _() -> None:
    host, x = torch.zeros(3).pin_memory(), torch.ones(3, device=d)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x.copy_(host, non_blocking=True)
    assert x.tolist() == [1, 1, 1]
    host.fill_(7)
    graph.replay()
    assert x.tolist() == [7, 7, 7]


@idiom("item() while a graph is captured", raises=NOT_PERMITTED)
def _() -> None:
    _captured(lambda x: x.sum().item())


@idiom("waiting for the device while a graph is captured", raises=NOT_PERMITTED)
def _() -> None:
    _captured(lambda x: torch.cuda.synchronize())


@idiom("waiting for the stream while a graph is captured", raises=NOT_PERMITTED)
def _() -> None:
    _captured(lambda x: torch.cuda.current_stream().synchronize())


@idiom("a mask as an index while a graph is captured", raises=NOT_PERMITTED)
def _() -> None:
    _captured(lambda x: x[x > 0])


@idiom("a condition while a graph is captured", raises=NOT_PERMITTED)
def _() -> None:
    _captured(lambda x: 1 if (x > 0).all() else 0)


@idiom("a copy that is waited for while a graph is captured", raises=NOT_PERMITTED)
def _() -> None:
    host = torch.ones(3).pin_memory()
    _captured(lambda x: x.copy_(host))


@idiom("a copy to the CPU while a graph is captured", raises=UNPINNED)
def _() -> None:
    _captured(lambda x: x.cpu())


@idiom("a number as a tensor while a graph is captured", raises=UNPINNED)
def _() -> None:
    _captured(lambda x: torch.tensor(1.0, device=d))


@idiom("an optimizer that is not capturable", raises="Attempting CUDA graph capture of step() for an instance of Adam")
def _() -> None:
    _captured(lambda x: torch.optim.Adam([x]).step())


@idiom("the end of a capture that has failed", raises="CUDA error: operation failed due to a previous error during cap")
def _() -> None:
    stream = torch.cuda.current_stream()
    try:
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            torch.ones(1, device=d).item()
    finally:
        torch.cuda.set_stream(stream)


@idiom("numbers are written while a graph is captured")
def _() -> None:
    x = torch.ones(3, device=d)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x[:1] = 2
        x[x > 5] = 3.0
        x.masked_fill_(x > 5, 4.0)
    graph.replay()
    assert x.tolist() == [2, 1, 1]


@idiom("a replay without a capture", raises="Called CUDAGraph::replay without a preceding successful capture.")
def _() -> None:
    torch.cuda.CUDAGraph().replay()


@idiom("a capture on the default stream", raises="CUDA graphs must be captured on a non-default stream.")
def _() -> None:
    torch.cuda.CUDAGraph().capture_begin()


@idiom("a second capture in one graph", raises="This CUDAGraph instance already owns a captured graph.")
def _() -> None:
    graph = _captured(lambda x: x.add_(1))
    with torch.cuda.graph(graph):
        pass


@idiom("an empty graph")
def _() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _captured(lambda x: None)
    assert "The CUDA Graph is empty." in str(caught[-1].message)


@idiom("memory pools")
def _() -> None:
    handle = torch.cuda.graph_pool_handle()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=handle, stream=torch.cuda.Stream()):
        torch.ones(1, device=d)
    assert graph.pool() == handle
    graph.reset()
    pool = torch.cuda.MemPool()
    assert pool.id != torch.cuda.MemPool().id
    assert pool.snapshot() == []
    with torch.cuda.use_mem_pool(pool):
        assert torch.ones(1, device=d).is_cuda
