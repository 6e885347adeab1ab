"""Arguments of torch's functions: which may be numbers, which are moved or kept, which tell the size of a result."""

from __future__ import annotations

TAKES_NUMBERS = frozenset({"pow", "where", "isin", "result_type", "float_power", "xlogy"})
"""Operations whose tensors may all be numbers."""
MAY_BE_NUMBERS = frozenset({"other", "exponent", "repeats", "value", "min", "max", "start", "end", "weight"})
"""Parameters which take a number (or nothing) as well as a tensor."""
MOVES_ITSELF = frozenset({"ctc_loss"})
"""Functions that move their other arguments to where the first one is."""
COPIED = {"index_put": "indices", "index_put_": "indices"}
"""Functions that copy an argument, wherever it is, to what they write into."""
SIZED = {"torch.nn.functional.one_hot": "num_classes"}
"""Functions that wait only to learn how large their result is, each with the argument that tells."""
OF_SIZES = frozenset(
    """dilation dims kernel_size normalized_shape output_padding output_size pad padding scale_factor shape size sizes
    split_size stride""".split()
)
"""Parameters that are read as numbers: a tensor there is no operand, and may be anywhere."""
KEEPING = ("torch.nn.utils.", "torch.utils.data.")
"""Where the functions and classes come from that keep what they are given."""
