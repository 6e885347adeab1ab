"""Whether this devlint was compiled where it was built: it does the same, and says so, since only its speed differs."""

from __future__ import annotations

from importlib.machinery import EXTENSION_SUFFIXES, PathFinder

import devlint


def is_compiled() -> bool:
    """Whether the modules of the interpreter are not read from their sources, without importing them."""
    spec = PathFinder.find_spec("devlint.device", devlint.__path__)
    return spec is not None and (spec.origin or "").endswith(tuple(EXTENSION_SUFFIXES))
