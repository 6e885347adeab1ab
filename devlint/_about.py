"""The version of devlint, the folder that it lies in, and whether it was compiled there."""

from __future__ import annotations

import os
from importlib.machinery import EXTENSION_SUFFIXES, PathFinder

__version__ = "0.1.0"

PACKAGE = os.path.dirname(os.path.abspath(__file__))
"""The folder of devlint's own code; the one around it is the place on ``sys.path`` where devlint is found."""


def is_compiled() -> bool:
    """Whether the modules of the interpreter are not read from their sources, without importing them."""
    spec = PathFinder.find_spec("devlint.device.lattice", [f"{PACKAGE}/device"])
    return spec is not None and (spec.origin or "").endswith(tuple(EXTENSION_SUFFIXES))
