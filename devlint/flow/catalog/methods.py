"""The methods by which tensors and modules are moved, and their values are brought to the host."""

from __future__ import annotations

import re

MOVERS = frozenset({"to", "cuda", "cpu", "xpu", "hpu", "npu", "mps", "type_as"})
"""The methods that put their receiver somewhere."""
OF_MODULES = MOVERS - {"type_as"}
"""Those that a module has, too."""
TO_DEVICE = OF_MODULES - {"cpu"}
"""Those of them that lead to an accelerator, or wherever they are told."""
MODES = frozenset({"eval", "train"})
"""The methods that switch a module, and return it."""
HAND_ON = frozenset({"generate"})
"""The methods of transformers' networks that hand on to ``forward`` what they are given, as it is."""
ENCODE = frozenset(
    """encode decode encode_image encode_text forward_features forward_head get_image_features
    get_text_features""".split()
)
"""The methods of other networks of libraries by which only a part of these is applied."""
CONVERSIONS = frozenset({"half", "float", "double", "bfloat16", "type"})
"""The methods that change the type of the numbers, and where the type of a tensor names a device, that."""
FETCHES = frozenset({"cpu", "tolist", "item"})
"""The methods that bring the values of a tensor to the host, wherever it is."""
TO_NUMBERS = FETCHES - {"cpu"}
"""Those of them that make numbers of Python of the values, for which the host waits if they are on an accelerator."""
WRITERS = frozenset({"add_scalar", "add_scalars", "add_histogram", "add_image", "add_images"})
"""The methods of what writes TensorBoard's files, which take the values of each tensor that they are given."""
TO_HOST = FETCHES | {"numpy"}
"""The same with the one that takes the values from the host alone."""
_DTYPE = re.compile(
    r"(?:^|[._])dtype|^torch\.(?:b?float|double|half|u?int|long|short|bool|complex|q?u?int)\d*|memory_format|_format$"
)


def is_dtype(text: str) -> bool:
    """Whether a dotted name is that of a type of numbers, or of a layout in memory."""
    return bool(_DTYPE.search(text))
