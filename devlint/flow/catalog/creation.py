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
ARRAYS = frozenset(f"numpy.{name}" for name in "zeros ones empty eye identity tri arange".split())
"""Functions of NumPy that make an array of numbers alone, each with one of torch that makes the same tensor."""
ARRAY_FUNCTIONS = frozenset(f"numpy.{name}" for name in "triu tril expand_dims reshape transpose tile repeat".split())
"""Functions of NumPy after which such an array still has a tensor that is made as well."""
CONVERTERS = frozenset({"torch.from_numpy", "torch.tensor", "torch.as_tensor"})
"""What makes a tensor of an array."""
INDEXES = frozenset({"torch.arange", "torch.tril_indices", "torch.triu_indices"})
"""Functions that make indexes; those that draw them, such as `randperm`, draw other ones on an accelerator."""
FROM_VALUES = frozenset({"torch.tensor", "torch.as_tensor", "torch.asarray", "torch.FloatTensor", "torch.LongTensor"})
"""Functions whose result is a copy of values of the host."""
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


def is_cpu_type(path: str) -> bool:
    """Whether it names a type which tensors have on the CPU alone, as ``torch.Tensor`` does not."""
    return is_legacy(path) and path != "torch.Tensor"


UNWRITTEN = frozenset({"torch.empty"})
"""What makes memory that nothing has been written to: something else is to take its place."""
ASKS_FOR_TENSORS = frozenset({"isinstance", "torch.is_tensor"})
"""How a function asks whether it was given a tensor."""
