"""Functions that make tensors, by what they take: sizes, data, tensors, or numbers that say how many."""

from __future__ import annotations

SIZED = frozenset({"zeros", "ones", "empty", "rand", "randn", "full", "randint"})
FLAT = frozenset(
    {"arange", "range", "linspace", "logspace", "randperm", "eye", "tril_indices", "triu_indices", "cartesian_prod"}
)
DATA = frozenset({"tensor", "as_tensor", "asarray", "scalar_tensor", "Tensor"})
JOINING = frozenset(f"torch.{name}" for name in ("stack", "cat", "concat", "concatenate", "hstack", "vstack", "dstack"))
"""Functions that take several tensors at once, and not one."""
SHARING = frozenset({"torch.from_numpy", "torch.as_tensor", "torch.asarray", "numpy.asarray"})
"""Functions whose result may have the memory of what they are given."""
MAKING = frozenset(
    f"torch.{name}" for name in "tensor ones zeros full eye arange linspace rand randn randint randperm empty".split()
)
"""Functions that make tensors of values which the code itself chooses."""
LEGACY = frozenset(
    {"Tensor", "FloatTensor", "DoubleTensor", "HalfTensor", "LongTensor", "IntTensor", "ByteTensor", "BoolTensor"}
)
CUDA_TYPES = tuple("BFloat16 Bool Byte Char ComplexDouble ComplexFloat Double Float Half Int Long Short".split())
CUDA_MODULES = ("cuda", "cuda.sparse")
"""Where torch keeps constructors of those types that make tensors of CUDA."""


def is_legacy(path: str) -> bool:
    """Whether it is a constructor such as ``torch.FloatTensor``, which takes no ``device=`` of an accelerator."""
    module, _, name = path.rpartition(".")
    return module == "torch" and name in LEGACY
