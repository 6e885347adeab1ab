"""Dimensions: what the names of torch's functions and methods say of those of their results, and of gradients."""

from __future__ import annotations

REDUCTIONS = frozenset(
    """sum mean prod norm max min median std var all any amax amin argmax argmin logsumexp nansum nanmean
    count_nonzero dist numel trace det""".split()
)
SAME_SHAPE = frozenset(
    """clone detach contiguous float double half bfloat16 long int short bool byte requires_grad_ relu tanh sigmoid exp
    log sqrt abs neg square abs_ clamp clamp_ clamp_min clamp_max softmax log_softmax add sub mul div add_ sub_
    mul_ div_ pow zero_ fill_ normal_ uniform_ requires_grad random_ bernoulli_ log2 sin cos to_dense round
    floor ceil masked_fill masked_fill_ share_memory_ pin_memory type roll flip cumsum sort triu tril copy_
    logical_not bitwise_not dropout alpha_dropout gelu leaky_relu elu selu celu silu mish softplus softsign hardtanh
    hardswish hardsigmoid relu6 logsigmoid softmin gumbel_softmax normalize layer_norm group_norm instance_norm
    batch_norm rms_norm tanhshrink relu_ sigmoid_ tanh_ exp_ rsqrt reciprocal expm1 log1p log10 erf sign trunc frac
    nan_to_num cumprod""".split()
)
ALWAYS_MANY = frozenset(
    {"view", "reshape", "flatten", "unsqueeze", "expand", "repeat", "unsqueeze_", "nonzero", "masked_select", "tile"}
)
PERMUTED = frozenset(
    {"t", "transpose", "permute", "swapaxes", "swapdims", "movedim", "moveaxis", "adjoint", "t_", "transpose_"}
)
"""Methods that exchange dimensions: there are as many as before."""
MULTIPLE = frozenset(
    {"chunk", "split", "unbind", "topk", "sort", "tensor_split", "qr", "svd", "unique", "unsafe_chunk"}
)
UNDIFFERENTIATED = frozenset(
    """detach argmax argmin argsort long int short bool byte nonzero count_nonzero eq ne lt le gt ge isnan
    isfinite""".split()
)
"""What no gradient comes back through."""
SELF_PERHAPS = frozenset({"contiguous", "float", "double", "half", "bfloat16", "requires_grad_"})
"""Methods that return the tensor itself where there is nothing to do: a parameter may stay one."""
MATRICES = {"mm": 2, "addmm": 2, "bmm": 3, "baddbmm": 3, "outer": 2}
"""Functions whose results have so many dimensions."""
PAIRS = frozenset({"max", "min", "median", "mode", "kthvalue", "cummax", "cummin"})
SHAPED_AS = ("expand_as", "view_as", "reshape_as")
SHAPED = frozenset({"view", "reshape", "expand", "repeat"})
LOSSES = """binary_cross_entropy binary_cross_entropy_with_logits cosine_embedding_loss cross_entropy ctc_loss
    gaussian_nll_loss hinge_embedding_loss huber_loss kl_div l1_loss linear_cross_entropy margin_ranking_loss mse_loss
    multi_margin_loss multilabel_margin_loss multilabel_soft_margin_loss nll_loss poisson_nll_loss smooth_l1_loss
    soft_margin_loss triplet_margin_loss triplet_margin_with_distance_loss""".split()
BROADCASTING = "add sub mul div maximum minimum where fmod remainder eq ne lt le gt ge".split()
"""Functions of several tensors, whose results have as many dimensions as the one that has most."""
JOINED = {"cat": 0, "concat": 0, "stack": 1, "hstack": None, "vstack": None, "concatenate": None}
"""How many dimensions more the result has than what is put together."""
