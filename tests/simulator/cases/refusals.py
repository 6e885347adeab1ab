"""What CUDA's kernels refuse or take otherwise than the host's, in the words of torch 2.13."""

from __future__ import annotations

import gc
import warnings
from typing import Any

import torch
import torch.nn.functional as F

from devlint.simulator.masquerade import card
from tests.simulator.cases.support import ZERO, raises, same

DEVICES = 1
LONG = torch.int64
ASSERTED = "CUDA error: device-side assert triggered"


def _on(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.ones(shape, dtype=dtype, device=ZERO)


def case_dtypes_that_cuda_does_not_take() -> None:
    integers, image = _on(2, 2, dtype=LONG), _on(1, 1, 4, 4, dtype=LONG)
    for text, action in (
        ("\"addmm_cuda\" not implemented for 'Long'", lambda: integers @ integers),
        ("\"addmm_cuda\" not implemented for 'Long'", lambda: torch.mm(integers, integers, out=integers.clone())),
        ("\"addmm_cuda\" not implemented for 'Bool'", lambda: integers.bool() @ integers.bool()),
        ("\"addmm_cuda\" not implemented for 'Int'", lambda: F.linear(integers.int(), integers.int())),
        ("\"addmv_impl_cuda\" not implemented for 'Long'", lambda: integers @ integers[0]),
        ("\"dot\" not implemented for 'Long'", lambda: integers[0] @ integers[0]),
        ("\"baddbmm_cuda\" not implemented for 'Long'", lambda: integers[None] @ integers[None]),
        ("\"baddbmm_cuda\" not implemented for 'Long'", lambda: torch.einsum("bij,bjk->bik", image[0], image[0])),
        ("getCudnnDataTypeFromScalarType() not supported for Long", lambda: F.conv2d(image, image[:, :, :2, :2])),
        ("\"avg_pool2d_out_cuda_frame\" not implemented for 'Long'", lambda: F.avg_pool2d(image, 2)),
        ("\"max_pool2d_with_indices_out_cuda_frame\" not implemented for 'Long'", lambda: F.max_pool2d(image, 2)),
        (
            "\"upsample_bilinear2d_out_frame\" not implemented for 'Byte'",
            lambda: F.interpolate(image.byte(), scale_factor=2, mode="bilinear"),
        ),
        ("\"igamma_cuda\" not implemented for 'Half'", lambda: torch.igamma(_on(2).half(), _on(2).half())),
        (
            "\"cuda_scatter_gather_base_kernel_func\" not implemented for 'Bool'",
            lambda: _on(2).bool().scatter_reduce(0, _on(2, dtype=LONG), _on(2).bool(), "amax"),
        ),
        ("\"svd_cuda_gesvdj\" not implemented for 'Half'", lambda: torch.linalg.svd(_on(2, 2).half())),
        ("\"svd_cuda_gesvdj\" not implemented for 'BFloat16'", lambda: torch.linalg.cond(_on(2, 2).bfloat16())),
        ("\"lu_factor_cusolver\" not implemented for 'Half'", lambda: torch.linalg.det(_on(2, 2).half())),
        ("\"host_softmax\" not implemented for 'Long'", lambda: torch.softmax(integers, 0)),
        ("'aten::histogram.bin_ct' with arguments from the 'CUDA' backend", lambda: torch.histogram(_on(2))),
    ):
        with raises(RuntimeError, text):
            action()
    same(_on(2).bool().scatter_reduce(0, _on(2, dtype=LONG), _on(2).bool(), "sum"), torch.ones(2).bool())


def case_dtypes_that_only_cuda_takes() -> None:
    x = torch.randn(3, dtype=torch.complex64).to(torch.complex32)
    expected = x.to(torch.complex64).sin().to(torch.complex32)
    same(x.to(ZERO).sin(), expected)
    same(x.to(ZERO).sin_(), expected)
    out = torch.empty(0, dtype=torch.complex32, device=ZERO)
    assert torch.sin(x.to(ZERO), out=out) is out
    same(out, expected)
    same(torch.histc(_on(3, dtype=LONG), 2, 0, 2), torch.tensor([0, 3]))
    same(_on(2).bool().abs(), torch.ones(2).bool())
    numbers = torch.tensor([1 + 2j, float("nan"), 3])
    same(numbers.to(ZERO).nansum(), torch.tensor(4 + 2j))
    same(numbers[None].to(ZERO).nansum(0, keepdim=True), torch.tensor([[1 + 2j, 0, 3]]))
    half = _on(2, 2).half()
    same(torch.mm(half, half, out_dtype=torch.float32), torch.full((2, 2), 2.0))
    volume = torch.randn(1, 1, 2, 2, 2).half().to(ZERO).requires_grad_()
    F.avg_pool3d(volume, 2).sum().backward()
    same(volume.grad, torch.full((1, 1, 2, 2, 2), 0.125).half())


def case_half_precision_ffts() -> None:
    x = torch.randn(4, 8).half()
    given = x.to(ZERO).requires_grad_()
    spectrum = torch.fft.rfft2(given)
    same(spectrum, torch.fft.rfft2(x.float()).to(torch.complex32))
    same(torch.fft.irfft2(spectrum), torch.fft.irfft2(spectrum.detach().host.to(torch.complex64)).half())
    spectrum.abs().float().sum().backward()
    assert given.grad is not None
    assert given.grad.dtype == torch.float16
    for action in (
        lambda: torch.fft.fft(_on(6).half()),
        lambda: torch.fft.fft(_on(6, dtype=torch.complex32)),
        lambda: torch.fft.irfft(_on(4, dtype=torch.complex32), 6),
    ):
        with raises(
            RuntimeError, "cuFFT only supports dimensions whose sizes are powers of two when computing in half"
        ):
            action()
    same(torch.fft.fft(_on(6)), torch.fft.fft(torch.ones(6)))


def case_indices_and_numbers_that_there_are_not() -> None:
    five, x = torch.tensor([5], device=ZERO), _on(3, 3)
    for action in (
        lambda: x[five],
        lambda: x[torch.tensor([5])],
        lambda: x.__setitem__(five, 0.0),
        lambda: x.gather(1, five[None]),
        lambda: x.scatter(1, five[None], 1.0),
        lambda: x.index_select(0, five),
        lambda: x.take(five + 10),
        lambda: F.embedding(five, x),
        lambda: F.embedding_bag(five[None], x),
        lambda: F.cross_entropy(x[:1], five),
        lambda: F.one_hot(five, 3),
        lambda: F.binary_cross_entropy(_on(1) + 1, _on(1)),
        lambda: torch.bernoulli(_on(1) + 1),
    ):
        with raises(torch.AcceleratorError, ASSERTED):
            action()
    same(F.one_hot(five - 4), torch.tensor([[0, 1]]))
    same(F.one_hot(five - 4, 3), torch.tensor([[0, 1, 0]]))
    same(x + 1, torch.full((3, 3), 2.0))  # unlike on a real device, all goes on
    for action in (lambda: x[5], lambda: x.sum(5), lambda: torch.ones(3)[torch.tensor([5])]):
        with raises(IndexError, "out of"):
            action()


def case_integers_divided_by_zero() -> None:
    zero = torch.tensor([0, 2], device=ZERO)
    for quotient in (
        _on(2, dtype=LONG) * 7 // zero,
        torch.div(_on(2, dtype=LONG) * 7, zero, rounding_mode="trunc"),
        (_on(2, dtype=LONG) * 7).floor_divide_(zero),
    ):
        same(quotient, torch.tensor([-1, 3]))
    same(_on(2, dtype=LONG) * 7 % zero, torch.tensor([7, 1]))
    same(_on(2, dtype=LONG) * 7 % 0, torch.tensor([7, 7]))
    same(_on(2, dtype=LONG) / zero, torch.tensor([float("inf"), 0.5]))


def _deterministic(action: Any, text: str, warn_only: bool = False) -> None:
    torch.use_deterministic_algorithms(True, warn_only=warn_only)
    try:
        if not text:
            action()
        elif warn_only:
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                action()
            assert any(text in str(warning.message) for warning in seen), seen
        else:
            with raises(RuntimeError, text):
                action()
    finally:
        torch.use_deterministic_algorithms(False)


def case_operations_that_are_not_deterministic() -> None:
    x, image, index = _on(3), _on(1, 1, 4, 4), torch.tensor([[0, 0, 1]], device=ZERO)
    does_not = " does not have a deterministic implementation, but you set 'torch.use_deterministic_algorithms(True"
    for caller, action in (
        ("cumsum_cuda_kernel", lambda: x.cumsum(0)),
        ("_bincount_cuda", lambda: torch.bincount(index[0], x)),
        ("_histc_cuda with floating point input", lambda: torch.histc(x)),
        ("median CUDA with indices output", lambda: x.median(0)),
        ("scatter_reduce_cuda_prod_", lambda: x[None].scatter_reduce(0, index, x[None], "prod")),
        ("put_", lambda: x.put(index[0, :1], x[:1])),
        ("avg_pool3d_backward_cuda", lambda: _backward(F.avg_pool3d, _on(1, 2, 2, 2), 1)),
        ("adaptive_avg_pool2d_backward_cuda", lambda: _backward(F.adaptive_avg_pool2d, image, 2)),
        ("grid_sampler_2d_backward_cuda", lambda: _backward(F.grid_sample, image, _on(1, 2, 2, 2))),
        ("reflection_pad2d_backward_cuda", lambda: _backward(F.pad, image, (1, 1, 1, 1), "reflect")),
        ("max_unpooling2d_forward_out", lambda: F.max_unpool2d(image, index[:, :1, None, None] * image.long(), 1)),
        ("embedding_bag_backward_cuda_max", lambda: _backward(_largest, _on(3, 2), index)),
    ):
        _deterministic(action, caller + does_not)
    _deterministic(lambda: x.cumsum(0), f"cumsum_cuda_kernel{does_not}, warn_only=True)'", warn_only=True)
    for action in (lambda: x.long().cumsum(0), lambda: torch.bincount(index[0]), x.median, lambda: image @ image):
        _deterministic(action, "")
    x.cumsum(0)


def _backward(function: Any, given: torch.Tensor, *args: Any) -> None:
    function(given.requires_grad_(), *args).sum().backward()


def _largest(weight: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    return F.embedding_bag(indices, weight, mode="max")


def case_memory_beyond_the_card() -> None:
    gc.collect()
    before = torch.cuda.memory_allocated()
    for action in (
        lambda: torch.empty(10**14, device=ZERO),
        lambda: torch.zeros(10**14, device=ZERO),
        lambda: _on(1).new_zeros(10**14),
        lambda: torch.ones(1).expand(10**14).to(ZERO),
    ):
        with raises(
            torch.cuda.OutOfMemoryError, "CUDA out of memory. Tried to allocate 372529.03 GiB. GPU 0 has a total"
        ):
            action()
    advice = "large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See "
    with raises(torch.cuda.OutOfMemoryError, advice):
        torch.empty(10**14, device=ZERO)
    gc.collect()
    assert torch.cuda.memory_allocated() == before, (torch.cuda.memory_allocated(), before)
    assert torch.cuda.memory_stats()["num_ooms"] == 5
    size = card.memory
    card.set_memory("64MiB")
    try:
        assert torch.cuda.mem_get_info() == ((64 << 20) - before, 64 << 20)
        assert torch.cuda.get_device_properties(0).total_memory == 64 << 20
        assert _largest_batch() == 8
        assert torch.cuda.memory_allocated() == before
        torch.cuda.set_per_process_memory_fraction(0.25)
        assert _largest_batch() == 2
        torch.cuda.set_per_process_memory_fraction(1.0)
    finally:
        card.set_memory(size)


def _largest_batch() -> int:
    """The largest power of two for which two tensors of 3 MiB per sample fit."""
    batch = 1
    while True:
        try:
            first = torch.empty(batch, 3 << 18, device=ZERO)
            second = first + 1
        except torch.cuda.OutOfMemoryError:
            return batch // 2
        del first, second
        batch *= 2


def case_out_is_written() -> None:
    out = torch.full((), -1, device=ZERO)
    assert torch.linalg.matrix_rank(torch.eye(5, device=ZERO), out=out) is out
    same(out, torch.tensor(5))
    parts = [torch.empty(0, device=ZERO) for _ in range(2)]
    torch.split_with_sizes_copy(_on(3), [1, 2], out=parts)
    same(parts[0], torch.ones(1))
    same(parts[1], torch.ones(2))


def case_what_the_host_has_no_kernel_for_is_said() -> None:
    with raises(NotImplementedError, "devlint does not simulate aten::_efficient_attention_forward: the host has no"):
        attend = torch.ops.aten._efficient_attention_forward
        x = _on(1, 2, 1, 8)
        attend(x, x, x, None, None, None, 2, 2, 0.0, 0)
