"""What is known of functions that execution on a stand-in device cannot show, each with its reason."""

from __future__ import annotations

from collections.abc import Mapping

# Rules of functions that move tensors, leave torch, treat their arguments unequally, or cannot be run with made-up
# input. Everything that execution does show is left to it.
RULES: Mapping[str, str] = {
    "torch.Tensor.to": "mover:arg",
    "torch.Tensor.type": "mover:legacy-type",
    "torch.Tensor.type_as": "mover:other",
    **{f"torch.Tensor.{device}": f"mover:{device}" for device in ("cpu", "cuda", "ipu", "mtia", "xpu")},
    "torch.Tensor.pin_memory": "cpu-pinned",
    "torch.Tensor.numpy": "numpy",
    **dict.fromkeys(("torch.Tensor.apply_", "torch.Tensor.map_", "torch.Tensor.map2_"), "cpu-only"),
    **dict.fromkeys(
        (
            "torch.Tensor.data_ptr",
            "torch.Tensor.get_device",
            "torch.Tensor.item",
            "torch.Tensor.tolist",
        ),
        "python",
    ),
    **dict.fromkeys(
        (
            "torch.Tensor.register_hook",
            "torch.Tensor.register_post_accumulate_grad_hook",
            "torch.nn.utils.clip_grad_value_",
        ),
        "none",
    ),
    **dict.fromkeys(("torch.tensor", "torch.as_tensor", "torch.asarray"), "data_or_default"),
    # 0-dim tensors are allowed as bounds; the result does not follow them.
    **dict.fromkeys(("torch.linspace", "torch.logspace", "torch.empty_quantized"), "default_or_kwarg"),
    "torch.normal": "arg_tensor_or_cpu",
    "torch.sparse_coo_tensor": "like_input_or_kwarg",
    **dict.fromkeys(("torch.from_numpy", "torch.frombuffer", "torch.from_file"), "cpu"),
    "torch.from_dlpack": "producer",
    "torch.nn.utils.rnn.pad_packed_sequence": "tuple:same_as_input,cpu",
    "torch.nn.utils.clip_grad_norm_": "grad_device",
    **dict.fromkeys(
        (
            "torch.Tensor.as_subclass",
            "torch.Tensor.share_memory_",
            "torch.Tensor.to_sparse_coo",
            "torch.complex",
            "torch.lobpcg",
            "torch.nn.functional.adaptive_max_pool1d_with_indices",
            "torch.nn.functional.adaptive_max_pool2d_with_indices",
            "torch.nn.functional.adaptive_max_pool3d_with_indices",
            "torch.nn.functional.affine_grid",
            "torch.nn.functional.fold",
            "torch.nn.functional.fractional_max_pool2d_with_indices",
            "torch.nn.functional.fractional_max_pool3d_with_indices",
            "torch.nn.functional.gaussian_nll_loss",
            "torch.nn.functional.lp_pool3d",
            "torch.nn.functional.multi_head_attention_forward",
            "torch.nn.init.sparse_",
            "torch.nn.init.trunc_normal_",
            "torch.nn.utils.rnn.pack_padded_sequence",
            "torch.nn.utils.rnn.pack_sequence",
            "torch.nn.utils.rnn.unpack_sequence",
        ),
        "same_as_input",
    ),
}

# Whether the host waits: kernels that copy to the host, and utilities seen to wait only for their made-up input.
SYNCS: Mapping[str, str | None] = {
    **dict.fromkeys(
        (
            "torch.Tensor.cpu",
            "torch.Tensor.item",
            "torch.Tensor.nonzero",
            "torch.Tensor.to_sparse_coo",
            "torch.Tensor.tolist",
        ),
        "always",
    ),
    # the number of entries that are left is read; what is coalesced already returns itself
    "torch.Tensor.coalesce": "sometimes",
    "torch.nn.utils.rnn.pack_padded_sequence": None,
    "torch.nn.utils.rnn.pack_sequence": None,
}

# The lengths become CPU tensors of the packed sequence; the split points are read by the host.
MUST_BE_CPU: Mapping[str, frozenset[str]] = {
    "torch.nn.utils.rnn.pack_padded_sequence": frozenset({"lengths"}),
    "torch.tensor_split": frozenset({"tensor_indices_or_sections"}),
    "torch.Tensor.tensor_split": frozenset({"tensor_indices_or_sections"}),
}

# FakeTensor accepts mixtures that accelerators reject, so that it accepts one is not evidence. These accept a CPU
# tensor of any dimension by design: they copy across devices, read only a shape or a dtype, or move the indices.
ACCEPTS_CPU: Mapping[str, frozenset[str]] = {
    "torch.Tensor.copy_": frozenset({"self", "other"}),
    **dict.fromkeys(
        ("torch.index_put", "torch.index_put_", "torch.Tensor.index_put", "torch.Tensor.index_put_"),
        frozenset({"indices"}),
    ),
    **dict.fromkeys(
        (f"torch.Tensor.{name}" for name in ("to", "type_as", "view_as", "reshape_as", "expand_as", "module_load")),
        frozenset({"self", "other"}),
    ),
    "torch.Tensor.resize_as": frozenset({"self", "tensor"}),
    "torch.Tensor.resize_as_": frozenset({"self", "the_template"}),
    "torch.resize_as_": frozenset({"input", "the_template"}),
    "torch.is_same_size": frozenset({"input", "other"}),
    "torch.Tensor.is_same_size": frozenset({"self", "other"}),
    "torch.result_type": frozenset({"tensor", "other"}),
}

# Checks that FakeTensor leaves out, where CUDA raises. Convolutions: "Input type (torch.cuda.FloatTensor) and weight
# type (torch.FloatTensor) should be the same", and likewise for the bias. Attention adds its mask to scores, or hands
# it to a kernel that takes CUDA tensors alone.
_CONVOLUTIONS = tuple(f"conv{kind}{n}d" for kind in ("", "_transpose") for n in (1, 2, 3))
REJECTS_CPU_ON_CUDA: Mapping[str, frozenset[str]] = {
    f"{namespace}.{name}": frozenset({"input", "weight", "bias"})
    for namespace in ("torch", "torch.nn.functional")
    for name in _CONVOLUTIONS
} | {"torch.nn.functional.scaled_dot_product_attention": frozenset({"query", "key", "value", "attn_mask"})}

# FakeTensor has kernels of its own for these, or stops at the sync. Their CUDA kernels are declared with a check that
# all tensors are on one device, which the generator makes sure of.
REJECTS_CPU_BY_KERNEL: Mapping[str, frozenset[str]] = {
    "torch.equal": frozenset({"input", "other"}),
    "torch.Tensor.equal": frozenset({"self", "other"}),
    "torch.masked_select": frozenset({"input", "mask"}),
    "torch.Tensor.masked_select": frozenset({"self", "mask"}),
    "torch.bincount": frozenset({"input", "weights"}),
    "torch.Tensor.bincount": frozenset({"self", "weights"}),
}

# FakeTensor compares devices before the function runs. CUDA leaves these to the function, which copies the argument
# over (`bernoulli_`, the scatters into a view) or is for sparse tensors only, which were not tried.
NOT_REJECTED_ON_CUDA: Mapping[str, frozenset[str]] = {
    "torch.Tensor.bernoulli_": frozenset({"self", "p"}),
    **dict.fromkeys(
        ("torch.select_scatter", "torch.as_strided_scatter", "torch.resize_as_sparse_"),
        frozenset({"input", "src", "the_template"}),
    ),
    **dict.fromkeys(
        ("torch.Tensor.select_scatter", "torch.Tensor.as_strided_scatter", "torch.Tensor.resize_as_sparse_"),
        frozenset({"self", "src", "the_template"}),
    ),
}
