"""What the host's kernels say when they refuse a dtype, in the words of CUDA's."""

from __future__ import annotations

import re

_SOFTMAX = ("softmax_kernel_impl", "softmax_lastdim_kernel_impl")
_SOFTMAX_BACKWARD = ("softmax_backward_kernel_impl", "softmax_backward_lastdim_kernel_impl")
NAMES = {
    **dict.fromkeys((*_SOFTMAX, *(f"log_{name}" for name in _SOFTMAX)), "host_softmax"),
    **dict.fromkeys((*_SOFTMAX_BACKWARD, *(f"log_{name}" for name in _SOFTMAX_BACKWARD)), "host_softmax_backward"),
    **dict.fromkeys(("ge_cpu", "gt_cpu", "le_cpu", "lt_cpu"), "compare_cuda"),
    **dict.fromkeys(("eq_cpu", "ne_cpu", "equal_cpu"), "compare_eq_ne_cuda"),
    **dict.fromkeys(("triu", "tril"), "triu_tril_cuda_template"),
    **dict.fromkeys(("scatter_gather_tensor_cpu", "scatter_gather_scalar_cpu"), "cuda_scatter_gather_base_kernel_func"),
    "GeluKernelImpl": "GeluCUDAKernelImpl",
    "_segment_reduce_cpu": "segment_reduce_cuda",
    "add_stub": "ufunc_add_CUDA",
    "cholesky_cpu": "cholesky_cusolver",
    "cholesky_solve_cpu": "cholesky_cuda_potrs",
    "clamp_min_scalar_cpu": "clamp_scalar_cuda",
    "clamp_max_scalar_cpu": "clamp_scalar_cuda",
    "cumsum_out_cpu": "cumsum_cuda",
    "grid_sampler3d_cpu": "grid_sampler_3d_cuda",
    "index_select": "index_select_cuda",
    "ldl_factor_kernel_cpu": "ldl_factor_looped_cusolver",
    "ldl_solve_kernel_cpu": "ldl_solve_looped_cusolver",
    "linalg.lu_solve_cpu": "lu_solve_cusolver",
    "linalg_eig_out_cpu": "linalg_eig_cuda",
    "linalg_svd_cpu": "svd_cuda_gesvdj",
    "log_sigmoid_cpu": "log_sigmoid_forward_cuda",
    "lu_cpu": "lu_factor_cusolver",
    "masked_fill": "masked_fill_",
    "maximum_cpu": "max_elementwise_cuda",
    "median_out": "median_out_impl",
    "minimum_cpu": "min_elementwise_cuda",
    "nll_loss_out_frame": "nll_loss_forward_reduce_cuda_kernel_2d",
    "nonzero_count_cpu": "nonzero_cuda",
    "random_update_from_to": "random_from_to_kernel_cuda",
    "take_put_cpu": "put_cuda",
    "topk_cpu": "topk_out_cuda",
}
"""What CUDA calls a kernel (`AT_DISPATCH...` in aten/src/ATen/native/cuda) whose name is not the host's with `cuda` for
`cpu`.  Where the shape decides between several, it is that of a single matrix."""
_REFUSAL = re.compile(r"^\"([\w.]+)\" not implemented for '\w+'")
_CPU = re.compile(r"(_vml)?_cpu(_out|_reduced_float|_kernel_impl)?")
_OTHERS = (
    (re.compile(r"^Sort does not support (\w+) dtypes on CPU"), r"Sort currently does not support \1 dtypes on CUDA."),
    (re.compile(r"(?<=dtypes on )CPU\b"), "CUDA"),
    (re.compile(r"\bCPU(?=[A-Z]\w+Type\b)"), "CUDA"),
)


def of_cuda(text: str) -> str:
    """What the host says of a dtype, said of a device; any other text as it is."""
    refused = _REFUSAL.match(text)
    if refused is not None:
        name = refused[1]
        return f'"{NAMES.get(name) or _CPU.sub("_cuda", name)}"{text[refused.end(1) + 1 :]}'
    for pattern, replacement in _OTHERS:
        text = pattern.sub(replacement, text)
    return text
