"""Training on a device, held against the same training on the host."""

from __future__ import annotations

import copy
import inspect
import io
import sys
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils import _pytree as pytree
from torch.utils.checkpoint import checkpoint

from devlint.simulator import backend
from tests.simulator.cases.support import CPU, ZERO, raises, same

DEVICES = 1


def _losses(
    make: Callable[[], nn.Module],
    batch: Callable[[], torch.Tensor],
    device: torch.device,
    optimizer: Callable[..., torch.optim.Optimizer] = torch.optim.SGD,
    **options: object,
) -> list[float]:
    """Three steps on the mean square of the model's output."""
    torch.manual_seed(3)
    model = make().to(device)
    stepper = optimizer(model.parameters(), lr=0.05, **options)
    losses = []
    for _ in range(3):
        out = model(batch().to(device))
        loss = (out[0] if isinstance(out, tuple) else out).square().mean()
        stepper.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        stepper.step()
        losses.append(loss.item())
    return losses


def _equal(make: Callable[[], nn.Module], batch: Callable[[], torch.Tensor], **options: object) -> None:
    assert _losses(make, batch, ZERO, **options) == _losses(make, batch, CPU, **options)  # type: ignore[arg-type]  # keywords


def case_optimizers() -> None:
    for optimizer in (
        torch.optim.SGD,
        torch.optim.Adam,
        torch.optim.AdamW,
        torch.optim.RMSprop,
        torch.optim.Adagrad,
        torch.optim.NAdam,
        torch.optim.RAdam,
        torch.optim.Adamax,
        torch.optim.Adadelta,
    ):
        for foreach in (None, False, True):
            _equal(lambda: nn.Linear(3, 2), lambda: torch.randn(4, 3), optimizer=optimizer, foreach=foreach)
    for optimizer in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.Adagrad):
        if "cuda_unsupported=True" in inspect.getsource(sys.modules[optimizer.__module__]):
            continue  # this torch has no such kernel for CUDA
        _equal(lambda: nn.Linear(3, 2), lambda: torch.randn(4, 3), optimizer=optimizer, fused=True)
    _equal(lambda: nn.Linear(3, 2), lambda: torch.randn(4, 3), momentum=0.9, nesterov=True)


def case_lbfgs() -> None:
    model = nn.Linear(3, 1).to(ZERO)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
    batch = torch.randn(5, 3, device=ZERO)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        return loss

    first = optimizer.step(closure)
    assert closure() < first


def case_convolutions_pooling_and_norms() -> None:
    def make() -> nn.Module:
        return nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.GroupNorm(2, 8),
            nn.ConvTranspose2d(8, 4, 2, stride=2),
            nn.InstanceNorm2d(4),
            nn.SiLU(),
            nn.Upsample(scale_factor=2, mode="bilinear"),
            nn.AdaptiveAvgPool2d(2),
            nn.Dropout2d(0.2),
            nn.Flatten(),
            nn.Linear(16, 5),
        )

    _equal(make, lambda: torch.randn(2, 3, 8, 8))


def case_recurrent_networks() -> None:
    for make in (
        lambda: nn.LSTM(4, 5, 2, batch_first=True, bidirectional=True),
        lambda: nn.GRU(4, 5, 2, dropout=0.2),
        lambda: nn.RNN(4, 5),
        lambda: nn.RNN(4, 5, nonlinearity="relu"),
        lambda: nn.LSTM(4, 5, proj_size=3),
    ):
        _equal(make, lambda: torch.randn(3, 2, 4))
    for cell in (nn.LSTMCell(4, 5), nn.GRUCell(4, 5), nn.RNNCell(4, 5)):
        batch = torch.randn(2, 4)
        expected, got = cell(batch), copy.deepcopy(cell).to(ZERO)(batch.to(ZERO))
        for ours, theirs in zip(pytree.tree_leaves(got), pytree.tree_leaves(expected), strict=True):
            same(ours, theirs)


def case_packed_sequences() -> None:
    padded = torch.randn(3, 2, 4)
    lstm = nn.LSTM(4, 5)
    packed = nn.utils.rnn.pack_padded_sequence(padded, torch.tensor([3, 2]))
    expected, _ = nn.utils.rnn.pad_packed_sequence(lstm(packed)[0])
    packed = nn.utils.rnn.pack_padded_sequence(padded.to(ZERO), torch.tensor([3, 2]))
    assert packed.batch_sizes.device == CPU
    got, lengths = nn.utils.rnn.pad_packed_sequence(lstm.to(ZERO)(packed)[0])
    assert lengths.device == CPU
    same(got, expected)
    with raises(RuntimeError, "'lengths' argument should be a 1D CPU int64 tensor, but got 1D {0} Long tensor"):
        nn.utils.rnn.pack_padded_sequence(padded.to(ZERO), torch.tensor([3, 2], device=ZERO))


def case_transformers() -> None:
    _equal(lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), lambda: torch.randn(2, 3, 8))
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    batch = torch.randn(2, 3, 8)
    with torch.no_grad():
        expected = layer(batch)
        same(layer.to(ZERO)(batch.to(ZERO)), expected)
    query = torch.randn(2, 2, 4, 8, requires_grad=True)
    moved = query.detach().to(ZERO).requires_grad_()
    for value in (query, moved):
        F.scaled_dot_product_attention(value, value, value, is_causal=True).sum().backward()
    same(moved.grad, query.grad)


def case_losses() -> None:
    logits, labels = torch.randn(4, 3), torch.tensor([0, 2, 1, 1])
    targets = torch.rand(4, 3)
    for loss in (F.cross_entropy, lambda a, b: F.nll_loss(a.log_softmax(1), b), lambda a, b: F.multi_margin_loss(a, b)):
        same(loss(logits.to(ZERO), labels.to(ZERO)), loss(logits, labels))
    for loss in (F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.binary_cross_entropy_with_logits, F.huber_loss):
        same(loss(logits.to(ZERO), targets.to(ZERO)), loss(logits, targets))
    log_probs = torch.randn(6, 2, 4).log_softmax(2)
    spoken, lengths, spoken_lengths = torch.tensor([[1, 2], [3, 1]]), torch.tensor([6, 5]), torch.tensor([2, 1])
    expected = F.ctc_loss(log_probs, spoken, lengths, spoken_lengths)
    same(F.ctc_loss(log_probs.to(ZERO), spoken.to(ZERO), lengths, spoken_lengths), expected)


def case_random_numbers_are_those_of_the_host() -> None:
    def draw(device: torch.device) -> list[torch.Tensor]:
        torch.manual_seed(5)
        ones = torch.ones(20, device=device)
        return [
            torch.randn(3, device=device),
            torch.rand(3, device=device, dtype=torch.float64),
            torch.randint(9, (4,), device=device),
            torch.randperm(6, device=device),
            F.dropout(ones, 0.5),
            torch.bernoulli(ones / 2),
            torch.multinomial(ones, 3),
            torch.normal(ones, 2.0),
            ones.clone().uniform_(),
            ones.clone().exponential_(),
            torch.randn_like(ones),
            torch.distributions.Normal(ones, ones).sample(),
        ]

    for got, expected in zip(draw(ZERO), draw(CPU), strict=True):
        same(got, expected)
    generator = torch.Generator(ZERO).manual_seed(1)
    got = torch.randn(3, device=ZERO, generator=generator)
    same(got, torch.randn(3, generator=torch.Generator().manual_seed(1)))


def case_autocast() -> None:
    model = nn.Linear(3, 3).to(ZERO)
    batch = torch.randn(2, 3, device=ZERO)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        out = model(batch)
        assert out.dtype == torch.bfloat16
        assert out.softmax(1).dtype == torch.float32
        assert F.layer_norm(out, (3,)).dtype == torch.float32
        assert F.mse_loss(out, batch).dtype == torch.float32
        assert out.sum().dtype == torch.float32
        assert out.relu().dtype == torch.bfloat16
        assert torch.addcmul(batch, out, out).dtype == torch.float32
        assert (
            F.conv2d(torch.randn(1, 1, 3, 3, device=ZERO), torch.randn(1, 1, 2, 2, device=ZERO)).dtype == torch.bfloat16
        )
        assert torch.ones(2, 2).mm(torch.ones(2, 2)).dtype == torch.float32, "the host's tensors are not cast"
        with raises(RuntimeError, "are unsafe to autocast"):
            F.binary_cross_entropy(out.sigmoid(), torch.zeros_like(out))
        with torch.autocast("cuda", enabled=False):
            assert model(batch).dtype == torch.float32
    out.float().sum().backward()
    assert model.weight.grad.dtype == torch.float32
    for make in (nn.LSTM, nn.GRU, nn.RNN):
        network = make(3, 3).to(ZERO)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            out, _ = network(model(batch)[None])
        assert out.dtype == torch.bfloat16
        out.float().sum().backward()
        assert network.weight_ih_l0.grad.dtype == torch.float32


def case_autocast_casts_a_weight_once() -> None:
    model = nn.Linear(3, 3).to(ZERO)
    batch = torch.randn(2, 3, device=ZERO)
    copies: list[torch.dtype] = []
    original = backend.KERNELS["copy_"]
    library = torch.library.Library("aten", "IMPL")

    def counted(target: torch.Tensor, source: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
        copies.append(target.dtype)
        return original(target, source, non_blocking)

    library.impl("copy_", counted, backend.KEY, allow_override=True)
    try:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            model(batch)
            model(batch)
    finally:
        library._destroy()
    # Weight and bias once, since autocast keeps what was cast of leaves that need gradients; the batch twice.
    assert copies == [torch.bfloat16] * 4, copies


def case_gradient_scaler() -> None:
    model = nn.Linear(3, 3).to(ZERO)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cuda", init_scale=4.0, growth_interval=1)
    before = model.weight.detach().clone()
    loss = model(torch.ones(2, 3, device=ZERO)).sum()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    assert model.bias.grad.tolist() == [2.0, 2.0, 2.0], "unscaled: two rows of ones"
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 8.0, "doubled after one good step"
    assert not torch.equal(before, model.weight)
    scaler.scale(model(torch.full((2, 3), float("inf"), device=ZERO)).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 4.0, "halved after an infinite gradient"


def case_checkpointing() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5)).to(ZERO)
    for reentrant in (False, True):
        batch = torch.ones(2, 3, device=ZERO, requires_grad=True)
        torch.manual_seed(0)
        model(batch).sum().backward()
        plain, batch.grad = batch.grad, None
        torch.manual_seed(0)
        checkpoint(model, batch, use_reentrant=reentrant).sum().backward()
        same(batch.grad, plain.host)


def case_double_backward() -> None:
    tensor = torch.tensor([2.0, 3.0], device=ZERO, requires_grad=True)
    (gradient,) = torch.autograd.grad((tensor**3).sum(), tensor, create_graph=True)
    gradient.sum().backward()
    assert tensor.grad.tolist() == [12.0, 18.0]


def case_function_transforms() -> None:
    tensor = torch.tensor([2.0, 3.0], device=ZERO)
    same(torch.vmap(lambda x: x * 2)(tensor), torch.tensor([4.0, 6.0]))
    same(torch.func.jacrev(lambda x: x**2)(tensor), torch.tensor([[4.0, 0.0], [0.0, 6.0]]))
    same(torch.func.grad(lambda x: (x**2).sum())(tensor), torch.tensor([4.0, 6.0]))
    _, tangent = torch.func.jvp(lambda x: x**2, (tensor,), (torch.ones(2, device=ZERO),))
    same(tangent, torch.tensor([4.0, 6.0]))
    model = nn.Linear(2, 2).to(ZERO)
    out = torch.func.functional_call(model, dict(model.named_parameters()), tensor)
    same(out, model(tensor).host)


def case_errors_in_backward_reach_the_caller() -> None:
    class Broken(torch.autograd.Function):
        @staticmethod
        def forward(ctx, tensor):  # type: ignore[no-untyped-def]  # torch's own signature
            return tensor * 2

        @staticmethod
        def backward(ctx, gradient):  # type: ignore[no-untyped-def]  # torch's own signature
            return gradient * torch.ones(3)

    leaf = torch.ones(3, device=ZERO, requires_grad=True)
    for _ in range(2):
        with raises(RuntimeError, "two devices, {0} and cpu!"):
            Broken.apply(leaf).sum().backward()
    (leaf * 2).sum().backward()
    assert leaf.grad.tolist() == [2.0, 2.0, 2.0]


def case_errors_in_the_engines_own_nodes_reach_the_caller() -> None:
    wrong: list[bool] = []
    original = backend.KERNELS["copy_"]

    def refusing(*args: object) -> object:
        if wrong:
            raise ValueError("refused")
        return original(*args)

    library = torch.library.Library("aten", "IMPL")
    library.impl("copy_", refusing, backend.KEY, allow_override=True)
    leaf = torch.ones(3, requires_grad=True)
    for _ in range(200):  # more often than CPython needs to specialise a call
        loss = (leaf.to(ZERO) * 2).sum()
        wrong.append(True)
        with raises(ValueError, "refused"):
            loss.backward()
        wrong.clear()
    library._destroy()


def case_parameters_keep_their_identity() -> None:
    model = nn.Linear(2, 2)
    weight, optimizer = model.weight, torch.optim.SGD(model.parameters(), lr=1.0)
    model.to(ZERO)
    assert model.weight is weight
    assert isinstance(weight, nn.Parameter)
    assert isinstance(nn.Parameter(torch.ones(2, device=ZERO)), nn.Parameter)
    loss = model(torch.ones(1, 2, device=ZERO)).sum()
    loss.backward()
    optimizer.step()
    model.half()
    assert model.weight is weight
    assert weight.dtype == torch.float16
    model.cpu()
    assert model.weight is weight
    assert type(weight) is nn.Parameter
    assert weight.device == CPU


def case_state_dicts() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).to(ZERO)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.randn(3, 2, device=ZERO)).sum().backward()
    optimizer.step()
    buffer = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, buffer)
    buffer.seek(0)
    saved = torch.load(buffer, map_location="cpu")
    fresh = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).to(ZERO)
    fresh.load_state_dict(saved["model"])
    same(fresh[0].weight, model[0].weight.detach().host)
    again = torch.optim.Adam(fresh.parameters())
    again.load_state_dict(saved["optimizer"])
    assert again.state[fresh[0].weight]["exp_avg"].device == ZERO
    fresh.load_state_dict(saved["model"], assign=True)
    assert fresh[0].weight.device == CPU


def case_parametrizations() -> None:
    batch = torch.randn(2, 3)
    for wrap in (
        nn.utils.parametrizations.weight_norm,
        nn.utils.parametrizations.spectral_norm,
        nn.utils.parametrizations.orthogonal,
    ):
        torch.manual_seed(0)
        host = wrap(nn.Linear(3, 3))
        torch.manual_seed(0)
        moved = wrap(nn.Linear(3, 3)).to(ZERO)
        expected, got = host(batch), moved(batch.to(ZERO))
        torch.testing.assert_close(got.detach().cpu(), expected.detach())
        got.sum().backward()


def case_averaged_models() -> None:
    model = nn.Linear(2, 2).to(ZERO)
    average = torch.optim.swa_utils.AveragedModel(model)
    average.update_parameters(model)
    same(average.module.weight, model.weight.detach().host)
    tracked = copy.deepcopy(model)
    for own, new in zip(tracked.parameters(), model.parameters(), strict=True):
        own.data.mul_(0.9).add_(new.data, alpha=0.1)
    model.weight.data = torch.zeros(2, 2, device=ZERO)
    assert model.weight.sum().item() == 0


def case_inference_mode() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.MultiheadAttention(2, 1)).to(ZERO)
    with torch.inference_mode():
        out = model[0](torch.ones(1, 2, device=ZERO))
        assert out.is_inference()
        out += 1
        model[1](out, out, out)
    with raises(RuntimeError, "Inference tensors cannot be saved for backward"):
        model[0](out)


def case_the_engine_uses_a_device_thread() -> None:
    import threading

    seen: list[int] = []
    leaf = torch.ones(2, device=ZERO, requires_grad=True)
    leaf.register_hook(lambda gradient: seen.append(threading.get_native_id()))
    (leaf * 2).sum().backward()
    assert seen != [threading.get_native_id()]


def case_convolutions_in_half_precision_have_gradients_of_single_precision() -> None:
    """They take the host a hundred times as long where it computes them in float16, and are less exact."""
    torch.manual_seed(0)
    values, kernel = torch.randn(2, 3, 32, 32).half(), torch.randn(4, 3, 3, 3).half()
    gradient = torch.randn(2, 4, 32, 32)
    found = [tensor.to(ZERO).requires_grad_() for tensor in (values, kernel)]
    F.conv2d(*found, padding=1).backward(gradient.half().to(ZERO))
    expected = [tensor.float().requires_grad_() for tensor in (values, kernel)]
    F.conv2d(*expected, padding=1).backward(gradient.half().float())
    for tensor, exact in zip(found, expected, strict=True):
        assert tensor.grad is not None
        assert exact.grad is not None
        assert tensor.grad.dtype == torch.float16
        assert torch.equal(tensor.grad.cpu(), exact.grad.half())
