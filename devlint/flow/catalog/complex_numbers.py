"""What makes complex numbers, and what makes real ones of them."""

from __future__ import annotations

TYPES = frozenset(f"torch.{name}" for name in "complex32 complex64 complex128 chalf cfloat cdouble".split())
_MAKING = frozenset({"polar", "complex", "view_as_complex", "chalf", "cfloat", "cdouble"})
_FOURIER = frozenset("fft fft2 fftn ifft ifft2 ifftn rfft rfft2 rfftn ihfft ihfft2 ihfftn".split())
_REAL = frozenset(
    """abs absolute angle view_as_real irfft irfft2 irfftn hfft hfft2 hfftn half bfloat16 float double bool short int
    long eq ne isnan isinf isfinite""".split()
)
PARTS = frozenset({"real", "imag"})
"""The attributes, and functions, that tell one of the two real parts."""


def makes(path: str) -> bool | None:
    """Whether a function or method makes complex numbers, or real ones; ``None``: as those are that it is given."""
    module, _, name = path.rpartition(".")
    if name in _MAKING or (name in _FOURIER and module == "torch.fft"):
        return True
    return False if name in _REAL or name in PARTS else None
