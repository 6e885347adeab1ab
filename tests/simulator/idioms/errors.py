"""What a CUDA machine refuses, in torch's words."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, random_split

from tests.simulator.idioms import Table

idiom = Table()
d = "cuda"
SAME = "Expected all tensors to be on the same device"


@idiom("vector of the device and vector of the CPU", raises=f"{SAME}, but found at least two devices, cuda:0 and cpu!")
def _() -> None:
    torch.randn(3, device=d) + torch.randn(3)


@idiom("vector of the CPU and vector of the device", raises=f"{SAME}, but found at least two devices, cpu and cuda:0!")
def _() -> None:
    torch.randn(3) + torch.randn(3, device=d)


@idiom("vectors of two devices", raises="but found at least two devices, cuda:0 and cuda:1!")
def _() -> None:
    torch.randn(3, device="cuda:0") + torch.randn(3, device="cuda:1")


@idiom("a scalar of the device added in place to a vector of the CPU", raises=SAME)
def _() -> None:
    x = torch.randn(3)
    x += torch.tensor(1.0, device=d)


@idiom("what has a kernel of its own on the CPU only", raises="Dimension out of range (expected to be in range of")
def _() -> None:
    torch.narrow_copy(torch.ones(2, device=d), 3, 0, 1)


@idiom(
    "a result of the CPU for what takes apart",
    raises="got self is on cuda:0, different from other tensors on cpu (when checking argument in method "
    "wrapper_CUDA_out_split_with_sizes_copy_out)",
)
def _() -> None:
    torch.split_with_sizes_copy(torch.ones(4, device=d), (2, 2), out=[torch.ones(2), torch.ones(2)])


@idiom("a result of the CPU for the most frequent values", raises="expected device 'cuda:0' but got 'cpu' for values")
def _() -> None:
    torch.mode(torch.ones(2, 2, device=d), 0, out=(torch.ones(2), torch.ones(2, dtype=torch.long)))


@idiom("what CUDA has no kernel for", raises="Could not run 'aten::narrow_copy.out' with arguments from the 'CUDA'")
def _() -> None:
    torch.narrow_copy(torch.ones(2, device=d), 0, 0, 1, out=torch.ones(1))


@idiom("a histogram of several dimensions", raises="Could not run 'aten::_histogramdd_bin_edges' with arguments from")
def _() -> None:
    torch.histogramdd(torch.ones(2, 2, device=d), [2, 2])


@idiom("scalars of two devices", raises="but found at least two devices, cuda:0 and cuda:1!")
def _() -> None:
    torch.tensor(1.0, device="cuda:0") + torch.tensor(1.0, device="cuda:1")


@idiom(
    "linear layer on the device, input on the CPU",
    raises="got mat1 is on cpu, different from other tensors on cuda:0 "
    "(when checking argument in method wrapper_CUDA_addmm)",
)
def _() -> None:
    nn.Linear(3, 3).cuda()(torch.randn(2, 3))


@idiom("matmul of both", raises="got mat2 is on cpu")
def _() -> None:
    torch.randn(2, 3, device=d) @ torch.randn(3, 2)


@idiom("embedding on the device, indices on the CPU", raises="got index is on cpu")
def _() -> None:
    nn.Embedding(4, 3).cuda()(torch.tensor([1]))


@idiom(
    "convolution on the CPU, image on the device",
    raises="Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same",
)
def _() -> None:
    nn.Conv2d(3, 4, 3)(torch.randn(1, 3, 8, 8, device=d))


@idiom(
    "convolution on the device, image on the CPU",
    raises="Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the same",
)
def _() -> None:
    nn.Conv2d(3, 4, 3).cuda()(torch.randn(1, 3, 8, 8))


@idiom("targets on the CPU", raises="is on cpu")
def _() -> None:
    F.cross_entropy(torch.randn(4, 3, device=d), torch.tensor([0, 1, 2, 0]))


@idiom("targets of another shape of loss on the CPU", raises="found at least two devices, cuda:0 and cpu!")
def _() -> None:
    F.mse_loss(torch.randn(4, 3, device=d), torch.randn(4, 3))


@idiom("cat of both", raises=SAME)
def _() -> None:
    torch.cat([torch.randn(2, device=d), torch.randn(2)])


@idiom("layer norm on the CPU, input on the device", raises="is on c")
def _() -> None:
    nn.LayerNorm(4)(torch.randn(2, 4, device=d))


@idiom(
    "LSTM on the device, input on the CPU",
    raises="Input and parameter tensors are not at the same device, found input tensor at cpu and parameter tensor at "
    "cuda:0",
)
def _() -> None:
    nn.LSTM(4, 5).cuda()(torch.randn(3, 2, 4))


@idiom(
    "index on the device for a tensor of the CPU",
    raises="indices should be either on cpu or on the same device as the indexed tensor (cpu)",
)
def _() -> None:
    torch.randn(10)[torch.tensor([1, 2], device=d)]


@idiom(
    "numpy()",
    raises="TypeError: can't convert cuda:0 device type tensor to numpy. "
    "Use Tensor.cpu() to copy the tensor to host memory first.",
)
def _() -> None:
    torch.randn(3, device=d).numpy()


@idiom("np.asarray", raises="can't convert cuda:1 device type tensor to numpy")
def _() -> None:
    np.asarray(torch.randn(3, device="cuda:1"))


@idiom("numpy function of a tensor", raises="can't convert cuda:0 device type tensor to numpy")
def _() -> None:
    np.mean(np.array(torch.randn(3, device=d)))


@idiom("numpy() of a tensor that requires grad, after cpu()", raises="Can't call numpy() on Tensor that requires grad")
def _() -> None:
    torch.ones(3, device=d, requires_grad=True).cpu().numpy()


@idiom("lengths on the device", raises="'lengths' argument should be a 1D CPU int64 tensor")
def _() -> None:
    nn.utils.rnn.pack_padded_sequence(torch.randn(3, 2, 4, device=d), torch.tensor([3, 2], device=d))


@idiom("a first state of the CPU for a cell on the device", raises=SAME)
def _() -> None:
    nn.GRUCell(8, 16).to(d)(torch.randn(4, 8, device=d), torch.zeros(4, 16))


@idiom("one state of two on the CPU for a cell on the device", raises=SAME)
def _() -> None:
    nn.LSTMCell(8, 16).to(d)(torch.randn(4, 8, device=d), (torch.zeros(4, 16, device=d), torch.zeros(4, 16)))


@idiom("a device that does not exist", raises="CUDA error: invalid device ordinal")
def _() -> None:
    torch.randn(3).to("cuda:7")


@idiom("a tensor made on a device that does not exist", raises="CUDA error: invalid device ordinal")
def _() -> None:
    torch.zeros(3, device="cuda:2")


@idiom("properties of a device that does not exist", raises="AssertionError: Invalid device id")
def _() -> None:
    torch.cuda.get_device_properties(2)


@idiom("set_device of a device that does not exist", raises="CUDA error: invalid device ordinal")
def _() -> None:
    torch.cuda.set_device(5)


@idiom("cuda() with the CPU", raises="Invalid device, must be cuda device")
def _() -> None:
    torch.ones(2).cuda("cpu")


@idiom(
    "pinning a tensor of the device", raises="cannot pin 'torch.cuda.FloatTensor' only dense CPU tensors can be pinned"
)
def _() -> None:
    torch.ones(2, device=d).pin_memory()


@idiom("loading on a machine with fewer devices", raises="Attempting to deserialize object on CUDA device 5")
def _() -> None:
    import io

    import torch.serialization as serialization

    buffer = io.BytesIO()
    torch.save(torch.ones(2), buffer)
    buffer.seek(0)
    serialization.load(buffer, map_location="cuda:5")


@idiom("grad of another device", raises="device type 'cpu' to a tensor with device type 'cuda'")
def _() -> None:
    p = nn.Parameter(torch.ones(2, device=d))
    p.grad = torch.ones(2)


@idiom(
    "generator of the CPU for a tensor on the device",
    raises="Expected a 'cuda' device type for generator but found 'cpu'",
)
def _() -> None:
    torch.randn(3, device=d, generator=torch.Generator())


@idiom(
    "generator of the device for a tensor on the CPU",
    raises="Expected a 'cpu' device type for generator but found 'cuda'",
)
def _() -> None:
    torch.randn(3, generator=torch.Generator(device=d))


@idiom(
    "generator of the device for a tensor of the CPU that is filled",
    raises="Expected a 'cpu' device type for generator but found 'cuda'",
)
def _() -> None:
    torch.empty(3).uniform_(generator=torch.Generator(device=d))


@idiom(
    "generator of the CPU for numbers drawn by probabilities on the device",
    raises="Expected a 'cuda' device type for generator but found 'cpu'",
)
def _() -> None:
    torch.bernoulli(torch.full((3,), 0.5, device=d), generator=torch.Generator())


@idiom(
    "loader in order, with a generator of the device, from which it draws the seed of its workers",
    raises="Expected a 'cpu' device type for generator but found 'cuda'",
)
def _() -> None:
    next(iter(DataLoader(range(4), generator=torch.Generator(device=d))))


@idiom(
    "loader with a generator of the CPU where the device is the default",
    raises="Expected a 'cuda' device type for generator but found 'cpu'",
)
def _() -> None:
    with torch.device(d):
        next(iter(DataLoader(range(4), generator=torch.Generator())))


@idiom(
    "random_split where the device is the default",
    raises="Expected a 'cuda' device type for generator but found 'cpu'",
)
def _() -> None:
    with torch.device(d):
        random_split(range(4), [2, 2])


@idiom(
    "random_split with a generator of the device",
    raises="Expected a 'cpu' device type for generator but found 'cuda'",
)
def _() -> None:
    random_split(range(4), [2, 2], generator=torch.Generator(device=d))


@idiom(
    "backward through what was changed in place",
    raises="modified by an inplace operation: [torch.cuda.FloatTensor [3]], which is output 0 of Exp",
)
def _() -> None:
    y = torch.ones(3, device=d, requires_grad=True).exp()
    loss = y.sum()
    y.add_(1)
    loss.backward()


@idiom(
    "backward to a weight that an optimizer has changed meanwhile",
    raises="modified by an inplace operation: [torch.cuda.HalfTensor [3]] is at version 1; expected version 0 instead",
)
def _() -> None:
    weight = torch.ones(3, device=d, dtype=torch.float16, requires_grad=True)
    loss = (weight * weight).sum()
    with torch.no_grad():
        weight.add_(1)
    loss.backward()


@idiom("backward with a gradient on the CPU", raises="invalid gradient at index 0 - expected device cuda:0 but got cpu")
def _() -> None:
    x = torch.ones(3, device=d, requires_grad=True)
    (x * 2).backward(torch.ones(3))


@idiom(
    "elapsed time of events without timing", raises="Both events must be created with argument 'enable_timing=True'."
)
def _() -> None:
    first, second = torch.cuda.Event(), torch.cuda.Event()
    first.record()
    second.record()
    first.elapsed_time(second)


@idiom("elapsed time of events not recorded", raises="Both events must be recorded before calculating elapsed time.")
def _() -> None:
    torch.cuda.Event(enable_timing=True).elapsed_time(torch.cuda.Event(enable_timing=True))


@idiom("DataParallel on a module of the CPU", raises="module must have its parameters and buffers on device cuda:0")
def _() -> None:
    nn.DataParallel(nn.Linear(3, 3), device_ids=[0, 1])(torch.randn(2, 3))
