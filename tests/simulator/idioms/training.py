"""Modules, optimizers, losses, mixed precision, loaders."""

from __future__ import annotations

import copy

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, RandomSampler, TensorDataset, random_split

from tests.simulator.idioms import Table

idiom = Table()
d = "cuda"
OPTIMIZERS = "SGD Adam AdamW RMSprop Adagrad NAdam RAdam Adamax Adadelta ASGD Rprop LBFGS".split()


def step(module: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = module(torch.ones(2, 3, device=d)).pow(2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)


@idiom("a module that is to get new parameters when it moves leaves the old ones where they are")
def _() -> None:
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    try:
        module = nn.Linear(3, 3)
        old = list(module.parameters())
        module.cuda()
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(False)
    assert not any(weight.is_cuda for weight in old)
    assert all(weight.is_cuda and weight.is_leaf for weight in module.parameters())
    assert all(isinstance(weight, nn.Parameter) for weight in module.parameters())


@idiom("a module moves in place")
def _() -> None:
    module = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    weight, mean = module[0].weight, module[1].running_mean
    assert module.cuda() is module
    assert module[0].weight is weight
    assert module[1].running_mean.is_cuda
    assert mean is not None
    assert weight.is_cuda
    assert weight.is_leaf
    assert isinstance(weight, nn.Parameter)
    assert type(weight.data) is type(torch.ones(1, device=d))
    assert module.to("cpu")[0].weight is weight
    assert type(weight) is nn.Parameter
    assert weight.device.type == "cpu"
    module.to("cuda:1")
    module.to("cuda:0")
    assert weight.device.index == 0
    assert next(module.parameters()).is_cuda


@idiom("attributes and ties of parameters survive a move")
def _() -> None:
    module = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    module[1].weight = module[0].weight
    module[0].weight.no_decay = True
    module.cuda()
    assert module[1].weight is module[0].weight
    assert module[0].weight.no_decay
    assert module[0].weight.data_ptr() == module[1].weight.data_ptr()


@idiom("a module moves although something refers to its parameters weakly, or has used them")
def _() -> None:
    import weakref

    module = nn.Linear(3, 3)
    reference = weakref.ref(module.weight)
    loss = module(torch.ones(1, 3)).sum()
    loss.backward()
    module.cuda()
    assert reference() is module.weight
    assert module.weight.grad is not None
    assert module.weight.grad.is_cuda
    module(torch.ones(1, 3, device=d)).sum().backward()
    assert module.weight.grad.tolist() == [[2.0] * 3] * 3


@idiom("an optimizer made before the move")
def _() -> None:
    module = nn.Linear(3, 3)
    optimizer = torch.optim.SGD(module.parameters(), 0.1)
    module.to(d)
    assert optimizer.param_groups[0]["params"][0] is module.weight
    before = module.weight.detach().clone()
    step(module, optimizer)
    assert not torch.equal(before, module.weight)


@idiom("all optimizers")
def _() -> None:
    for name in OPTIMIZERS:
        module = nn.Linear(3, 3).cuda()
        optimizer = getattr(torch.optim, name)(module.parameters(), lr=0.1)
        before = module.weight.detach().clone()
        step(module, optimizer)
        assert not torch.equal(before, module.weight), name
        optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        step(module, optimizer)


@idiom("foreach, fused and capturable optimizers")
def _() -> None:
    for options in ({"foreach": True}, {"fused": True}, {"capturable": True}):
        module = nn.Linear(3, 3).cuda()
        step(module, torch.optim.Adam(module.parameters(), lr=0.1, **options))


@idiom("autocast to bfloat16, float16 and by default")
def _() -> None:
    module = nn.Linear(3, 3).cuda()
    x = torch.randn(2, 3, device=d)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        assert module(x).dtype == torch.bfloat16
        assert torch.is_autocast_enabled("cuda")
        assert torch.is_autocast_enabled()
        assert torch.get_autocast_dtype("cuda") == torch.bfloat16
        assert F.softmax(module(x), -1).dtype == torch.float32
        assert F.layer_norm(module(x), (3,)).dtype == torch.float32
        with torch.autocast("cuda", enabled=False):
            assert module(x).dtype == torch.float32
    with torch.autocast(device_type="cuda"):
        assert module(x).dtype == torch.float16
    with torch.autocast(x.device.type):
        assert module(x).dtype == torch.float16
    with torch.amp.autocast("cuda", dtype=torch.float16):
        assert F.cross_entropy(module(x), torch.zeros(2, dtype=torch.long, device=d)).dtype == torch.float32
    assert not torch.is_autocast_enabled()
    assert module(x).dtype == torch.float32


@idiom("autocast as a decorator, and the older spellings")
def _() -> None:
    module = nn.Linear(3, 3).cuda()
    x = torch.randn(2, 3, device=d)
    with torch.cuda.amp.autocast():
        assert module(x).dtype == torch.float16
    with torch.cuda.amp.autocast(dtype=torch.bfloat16):
        assert torch.get_autocast_gpu_dtype() == torch.bfloat16

    @torch.autocast("cuda")
    def forward(x: torch.Tensor) -> torch.Tensor:
        return module(x)

    assert forward(x).dtype == torch.float16
    assert torch.amp.is_autocast_available("cuda")


@idiom("custom_fwd and custom_bwd")
def _() -> None:
    class Double(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)
        def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:
            assert x.dtype == torch.float32
            assert not torch.is_autocast_enabled("cuda")
            return x * 2

        @staticmethod
        @torch.amp.custom_bwd(device_type="cuda")
        def backward(ctx: object, grad: torch.Tensor) -> torch.Tensor:
            return grad * 2

    x = torch.ones(3, device=d, requires_grad=True)
    with torch.autocast("cuda"):
        Double.apply(x.half()).sum().backward()
    assert x.grad is not None


@idiom("gradient scaling")
def _() -> None:
    for make in (lambda: torch.amp.GradScaler("cuda"), torch.cuda.amp.GradScaler, torch.amp.GradScaler):
        module = nn.Linear(3, 3).cuda()
        optimizer = torch.optim.SGD(module.parameters(), 0.1)
        scaler = make()
        before = module.weight.detach().clone()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = module(torch.ones(2, 3, device=d)).float().mean()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(module.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        assert not torch.equal(before, module.weight)
        assert scaler.get_scale() == 65536.0
        assert scaler.is_enabled()


@idiom("gradient scaling skips a step with infinite gradients")
def _() -> None:
    module = nn.Linear(3, 3).cuda()
    optimizer = torch.optim.SGD(module.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cuda")
    before = module.weight.detach().clone()
    scaler.scale(module(torch.full((2, 3), float("inf"), device=d)).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert torch.equal(before, module.weight)
    assert scaler.get_scale() == 32768.0


@idiom("convolution, normalisation, pooling, dropout, recurrence, attention")
def _() -> None:
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(), nn.Flatten(), nn.Linear(72, 5)
    ).cuda()
    net(torch.randn(2, 3, 8, 8, device=d)).sum().backward()
    nn.LSTM(4, 5, 2, batch_first=True).cuda()(torch.randn(2, 3, 4, device=d))[0].sum().backward()
    nn.LSTM(4, 5, 2, dropout=0.5, bidirectional=True).cuda()(torch.randn(2, 3, 4, device=d))[0].sum().backward()
    with torch.autocast("cuda"):
        assert nn.LSTM(4, 5).cuda()(torch.randn(2, 3, 4, device=d))[0].dtype == torch.float16
    with torch.inference_mode():
        assert nn.LSTM(4, 5).cuda()(torch.randn(2, 3, 4, device=d))[0].is_cuda
    nn.GRU(4, 5).cuda()(torch.randn(2, 3, 4, device=d))[0].sum().backward()
    nn.RNN(4, 5).cuda()(torch.randn(2, 3, 4, device=d))[0].sum().backward()
    nn.LSTMCell(4, 5).cuda()(torch.randn(2, 4, device=d))[0].sum().backward()
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).cuda()
    layer(torch.randn(2, 3, 8, device=d)).sum().backward()
    layer.eval()
    with torch.no_grad():
        layer(torch.randn(2, 3, 8, device=d))
    nn.MultiheadAttention(8, 2).cuda()(*[torch.randn(3, 2, 8, device=d)] * 3)[0].sum().backward()
    q = torch.randn(2, 2, 4, 8, device=d, requires_grad=True)
    F.scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward()
    F.interpolate(torch.randn(1, 3, 4, 4, device=d), scale_factor=2, mode="bilinear")
    F.ctc_loss(torch.randn(5, 1, 4, device=d).log_softmax(-1), torch.ones(1, 2, dtype=torch.long, device=d), (5,), (2,))


@idiom("packed sequences")
def _() -> None:
    packed = nn.utils.rnn.pack_padded_sequence(torch.randn(3, 2, 4, device=d), torch.tensor([3, 2]))
    assert packed.is_cuda
    assert packed.batch_sizes.device.type == "cpu"
    out, _ = nn.LSTM(4, 5).cuda()(packed)
    padded, lengths = nn.utils.rnn.pad_packed_sequence(out)
    assert padded.is_cuda
    assert lengths.device.type == "cpu"
    cpu = nn.utils.rnn.pack_sequence([torch.randn(3, 4), torch.randn(2, 4)])
    assert cpu.cuda().data.is_cuda
    assert cpu.to("cuda:1").data.device.index == 1


@idiom("checkpointing, clipping, averaging, functional calls")
def _() -> None:
    from torch.utils.checkpoint import checkpoint

    module = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5)).cuda()
    x = torch.randn(2, 3, device=d, requires_grad=True)
    checkpoint(module, x, use_reentrant=False).sum().backward()
    checkpoint(module, x, use_reentrant=True).sum().backward()
    assert nn.utils.clip_grad_norm_(module.parameters(), 1.0).is_cuda
    nn.utils.clip_grad_value_(module.parameters(), 1.0)
    assert torch.func.functional_call(module, dict(module.named_parameters()), x).is_cuda
    average = torch.optim.swa_utils.AveragedModel(module)
    average.update_parameters(module)
    vector = nn.utils.parameters_to_vector(module.parameters())
    nn.utils.vector_to_parameters(vector, module.parameters())


@idiom("schedulers and parameter groups")
def _() -> None:
    module = nn.Linear(3, 3).cuda()
    optimizer = torch.optim.AdamW([{"params": [module.weight]}, {"params": [module.bias], "lr": 0.5}], lr=0.1)
    for scheduler in (
        torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10),
        torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=10),
    ):
        step(module, optimizer)
        scheduler.step()
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
    plateau.step(torch.tensor(1.0, device=d))


@idiom("functions and hooks of autograd")
def _() -> None:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: torch.autograd.function.FunctionCtx, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: torch.autograd.function.FunctionCtx, grad: torch.Tensor) -> torch.Tensor:
            assert ctx.saved_tensors[0].is_cuda
            return grad * 2

    seen: list[torch.device] = []
    x = torch.randn(3, device=d, requires_grad=True)
    y = Double.apply(x)
    y.register_hook(lambda grad: seen.append(grad.device))
    y.retain_grad()
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.is_cuda
    assert y.grad is not None
    assert seen == [torch.device("cuda:0")]
    (grad,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    grad.sum().backward()
    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        z = (x * x).sum()
    z.backward()
    assert torch.autograd.gradcheck(lambda t: t * t, torch.ones(2, dtype=torch.float64, device=d, requires_grad=True))


@idiom("hooks of modules and a post-accumulate hook")
def _() -> None:
    module = nn.Linear(3, 3).cuda()
    seen: list[str] = []
    module.register_forward_hook(lambda m, a, o: seen.append("forward"))
    module.register_full_backward_hook(lambda m, i, o: seen.append("backward"))
    module.weight.register_post_accumulate_grad_hook(lambda p: seen.append("accumulated"))
    module(torch.ones(1, 3, device=d)).sum().backward()
    assert sorted(seen) == ["accumulated", "backward", "forward"]


@idiom("buffers, parameter lists, lazy modules, sharing")
def _() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("scale", torch.ones(1))
            self.register_buffer("step", torch.tensor(0), persistent=False)
            self.weights = nn.ParameterList([torch.ones(3)])

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.step += 1
            return x * self.weights[0] * self.scale

    net = Net().cuda()
    assert net(torch.ones(3, device=d)).is_cuda
    assert net.step.item() == 1
    assert net.step.is_cuda
    lazy = nn.LazyLinear(4).cuda()
    assert lazy(torch.ones(2, 3, device=d)).shape == (2, 4)
    assert lazy.weight.is_cuda
    net.half()
    assert net.weights[0].dtype == torch.float16
    assert nn.Linear(2, 2).to("cuda", torch.bfloat16).weight.dtype == torch.bfloat16
    assert nn.Linear(2, 2).double().cuda().weight.dtype == torch.float64
    with torch.device("meta"):
        meta = nn.Linear(3, 3)
    assert meta.to_empty(device="cuda").weight.is_cuda
    module = nn.Linear(3, 3).cuda()
    nn.init.xavier_uniform_(module.weight)
    nn.utils.parametrizations.weight_norm(module)(torch.ones(1, 3, device=d))
    with torch.no_grad():
        net.weights[0].fill_(2)
        module.bias.copy_(torch.ones(3))
    assert module.bias.tolist() == [1.0, 1.0, 1.0]
    module.requires_grad_(False)
    module.zero_grad(set_to_none=True)


@idiom("loaders with pinned memory, with and without workers")
def _() -> None:
    data = TensorDataset(torch.randn(8, 3), torch.arange(8))
    for workers in (0, 2):
        for x, y in DataLoader(data, 4, num_workers=workers, pin_memory=True, shuffle=True):
            assert x.is_pinned()
            assert y.is_pinned()
            assert x.to(d, non_blocking=True).is_cuda


@idiom("a data set on the device")
def _() -> None:
    data = TensorDataset(torch.randn(8, 3, device=d), torch.arange(8, device=d))
    for x, _y in DataLoader(data, 4, shuffle=True):
        assert x.is_cuda
    first, _second = random_split(data, [6, 2], generator=torch.Generator().manual_seed(0))
    assert first[0][0].is_cuda
    loader = DataLoader(data, 2, sampler=RandomSampler(data, generator=torch.Generator().manual_seed(1)))
    assert len(list(loader)) == 4


@idiom("collating onto the device")
def _() -> None:
    data = [{"x": torch.ones(2), "y": i} for i in range(4)]

    def collate(batch: list[dict[str, object]]) -> dict[str, torch.Tensor]:
        return {key: value.to(d) for key, value in torch.utils.data.default_collate(batch).items()}

    for batch in DataLoader(data, 2, collate_fn=collate):
        assert batch["y"].is_cuda


@idiom("torch.compile")
def _() -> None:
    module = nn.Linear(3, 3).cuda()
    compiled = torch.compile(module)
    x = torch.randn(2, 3, device=d)
    assert torch.equal(compiled(x), module(x))
    assert compiled._orig_mod is module
    assert next(iter(compiled.state_dict())) == "_orig_mod.weight"
    compiled.train()
    compiled(x).sum().backward()
    assert module.weight.grad is not None

    @torch.compile(mode="max-autotune", fullgraph=True)
    def double(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    assert torch.equal(double(x), x * 2)
    assert torch.equal(torch.compile(lambda t: t + 1, dynamic=True, backend="inductor")(x), x + 1)
    module.compile()
    assert module(x).is_cuda


@idiom("scripting and tracing")
def _() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(3, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner(x)

    module = Net().cuda()
    x = torch.randn(2, 3, device=d)
    assert torch.equal(torch.jit.script(module)(x), module(x))
    assert torch.equal(torch.jit.trace(module, x)(x), module(x))
    assert torch.jit.script(nn.MultiheadAttention(4, 2)) is not None


@idiom("a profiler of CUDA activity")
def _() -> None:
    from torch.profiler import ProfilerActivity, profile, record_function, schedule

    both = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    with profile(activities=both, record_shapes=True) as prof, record_function("work"):
        torch.ones(3, device=d).sum().item()
    assert "work" in prof.key_averages().table(sort_by="cuda_time_total", row_limit=3)
    with profile(schedule=schedule(wait=0, warmup=1, active=1)) as prof:
        for _step in range(2):
            torch.ones(3, device=d)
            prof.step()
    with torch.autograd.profiler.profile(use_device="cuda"):
        torch.ones(3, device=d)


@idiom("determinism")
def _() -> None:
    torch.use_deterministic_algorithms(True)
    try:
        nn.Linear(3, 3).cuda()(torch.ones(2, 3, device=d)).sum().backward()
    finally:
        torch.use_deterministic_algorithms(False)


@idiom("anomaly detection and inference mode")
def _() -> None:
    module = nn.Linear(3, 3).cuda()
    with torch.autograd.set_detect_anomaly(True):
        module(torch.ones(2, 3, device=d)).sum().backward()
    with torch.inference_mode():
        assert module(torch.ones(2, 3, device=d)).is_inference()
        assert torch.ones(2).cuda().is_cuda
    with torch.no_grad():
        assert not module(torch.ones(2, 3, device=d)).requires_grad
