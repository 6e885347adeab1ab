"""Scripting, tracing, fake tensors, export and higher-order operators take simulated tensors for those of CUDA."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch._higher_order_ops.map import map as mapped
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch._subclasses import FakeTensor, FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.utils import _pytree as pytree

from tests.simulator.cases.support import CPU, ONE, ZERO, raises, same

DEVICES = 2


def _model(device: torch.device) -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU()).to(device).eval()


def case_modules_and_functions_are_scripted() -> None:
    for device in (ZERO, CPU):
        attention = nn.MultiheadAttention(8, 2, batch_first=True).to(device).eval()
        query = torch.ones(1, 3, 8, device=device)
        scripted = torch.jit.script(attention)(query, query, query)[0]
        assert torch.equal(scripted, attention(query, query, query)[0])

    @torch.jit.script
    def shifted(x: torch.Tensor) -> torch.Tensor:
        made = torch.ones([3, 4], device="cuda") + torch.zeros(3, 4, device=x.device) + torch.rand_like(x) * 0
        return x + made + torch.arange(4).to(x.device)

    assert shifted(torch.zeros(3, 4, device=ZERO))[0].tolist() == [1.0, 2.0, 3.0, 4.0]


def case_scripted_and_traced_modules_compute_the_same() -> None:
    model, x = _model(ZERO), torch.randn(3, 4, device=ZERO)
    for made in (torch.jit.script(model), torch.jit.trace(model, x), torch.fx.symbolic_trace(model)):
        assert torch.equal(made(x), model(x))
    with torch.no_grad():
        frozen = torch.jit.freeze(torch.jit.script(model))(x)
        same(frozen, torch.jit.freeze(torch.jit.script(model.cpu()))(x.cpu()))


def case_fake_tensors_are_on_the_device() -> None:
    with FakeTensorMode() as mode:
        made = torch.empty(3, 4, device=ONE)
        layer = nn.Linear(4, 2, device=ONE)
        layer(made[1:]).sum().backward()
        assert layer.weight.grad.device == ONE
        assert repr(made) == "FakeTensor(..., device='cuda:1', size=(3, 4))"
        with raises(RuntimeError, "{1}"):
            made + torch.ones(3, 4)
    fake = mode.from_tensor(torch.ones(2, device=ZERO))
    assert (type(fake), fake.device, (fake * 2)[1:].device) == (FakeTensor, ZERO, ZERO)


def case_functions_are_traced_to_graphs() -> None:
    model, x = _model(ZERO), torch.randn(3, 4, device=ZERO)
    for mode in ("real", "fake", "symbolic"):
        graph = make_fx(
            lambda a: model(a) + torch.ones(4, device="cuda"), tracing_mode=mode, _allow_non_fake_inputs=True
        )(x)
        assert "device(type='cuda'" in graph.code
        assert torch.equal(graph(x), model(x) + 1)


class _Shifted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.constant = torch.arange(4.0, device=ZERO)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shift = torch.cond(x.sum() > 1e6, torch.sin, torch.cos, (x,))
        return x + shift + self.constant + torch.ones(4, device=x.device)


def case_modules_are_exported() -> None:
    x = torch.randn(3, 4, device=ZERO)
    for module in (_model(ZERO), _Shifted()):
        exported = torch.export.export(module, (x,), dynamic_shapes=({0: torch.export.Dim("batch")},))
        assert "devlint" not in str(exported)
        buffer = io.BytesIO()
        torch.export.save(exported, buffer)
        buffer.seek(0)
        for program in (exported, exported.run_decompositions(), torch.export.load(buffer)):
            longer = torch.cat([x, x])
            assert torch.equal(program.module()(longer), module(longer))


def _both(function: Callable[..., Any]) -> None:
    """The function's results and gradients are those of the host, to the last bit."""
    torch.manual_seed(5)
    inputs = [torch.randn(3, 4), torch.randn(4)]
    results = []
    for device in (CPU, ZERO):
        leaves = [value.clone().to(device).requires_grad_() for value in inputs]
        out = pytree.tree_leaves(function(*leaves))
        sum(value.sum() for value in out).backward()
        results.append([value.detach().cpu() for value in (*out, *(leaf.grad for leaf in leaves))])
    assert all(torch.equal(one, other) for one, other in zip(*results, strict=True))


def case_control_flow_runs_with_its_gradients() -> None:
    _both(lambda x, w: torch.cond(x.sum() > 1e6, lambda a: a.sin() * w, lambda a: a.cos() * w, (x,)))
    _both(lambda x, w: torch.cond(x.sum() > 1e6, lambda a: {"out": a}, lambda a: {"out": a * w}, (x,)))
    _both(lambda x, w: scan(lambda carry, row: (carry + row * w, carry * row), torch.zeros_like(w), x))
    _both(lambda x, w: mapped(lambda row, by: row * by, x, w))
    count, doubled = while_loop(
        lambda i, a: i < 3, lambda i, a: (i + 1, a * 2), (torch.zeros((), device=ZERO), torch.ones(2, device=ZERO))
    )
    assert (count.item(), doubled.tolist()) == (3, [8.0, 8.0])


def case_attention_with_a_score_function_runs_uncompiled() -> None:
    bias = torch.zeros(16, device=ZERO, requires_grad=True)
    query = torch.randn(1, 2, 16, 8, device=ZERO, requires_grad=True)
    causal = create_block_mask(lambda b, h, i, j: i >= j, 1, 1, 16, 16, device="cuda")
    out = flex_attention(query, query, query, score_mod=lambda s, b, h, i, j: s + bias[i], block_mask=causal)
    expected = torch.nn.functional.scaled_dot_product_attention(query, query, query, is_causal=True)
    torch.testing.assert_close(out, expected)
    out.sum().backward()
    assert (query.grad.device, bias.grad.device) == (ZERO, ZERO)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        assert flex_attention(*[query.detach().bfloat16()] * 3).dtype == torch.bfloat16


def case_what_is_compiled_computes_the_same() -> None:
    model, x = _model(ZERO), torch.randn(3, 4, device=ZERO)
    for backend in ("eager", "aot_eager", "inductor"):
        assert torch.equal(torch.compile(model, backend=backend)(x), model(x))
    refusal = "devlint does not simulate TorchDynamo: torch.compile runs code as it is"
    with raises(NotImplementedError, refusal):
        torch.export.export(model, (x,), strict=True)
    with raises(NotImplementedError, refusal):
        torch._dynamo.explain(model)(x)
    assert torch.equal(torch.compile(model)(x), model(x))


def case_a_refusal_is_told_through_a_script() -> None:
    model = _model(ZERO)
    text = "RuntimeError: Expected all tensors to be on the same device, but got mat1 is on cpu, different from other"
    for made in (torch.jit.script(model), torch.jit.trace(model, torch.ones(3, 4, device=ZERO))):
        with raises(RuntimeError, text):
            made(torch.ones(3, 4))
    with raises(RuntimeError, "RuntimeError: Expected all tensors to be on the same device, but found at least two"):
        torch.jit.script(_added)(torch.ones(3, device=ZERO), torch.ones(3))


def _added(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x + y


def case_scripts_are_saved_and_loaded() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)
            self.register_buffer("buffer", torch.ones(4), persistent=False)
            self.attribute = torch.arange(4.0, device=ONE)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(x).t() + self.buffer + self.attribute

    model, x = Model().to(ONE).eval(), torch.randn(4, 4, device=ONE)
    for made in (torch.jit.script(model), torch.jit.trace(model, x), torch.jit.freeze(torch.jit.script(model))):
        buffer = io.BytesIO()
        torch.jit.save(made, buffer)
        assert b"devlint" not in buffer.getvalue()
        for location, device in ((None, ONE), ("cuda:0", ZERO), ("cpu", CPU)):
            buffer.seek(0)
            loaded = torch.jit.load(buffer, map_location=location)
            assert {parameter.device for parameter in loaded.parameters()} <= {device}
            assert torch.equal(loaded(x.to(device)).cpu(), model(x).cpu()), (location, device)
