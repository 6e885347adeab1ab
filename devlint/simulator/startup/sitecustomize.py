"""What a Python process imports first that a simulated one has started: it has the simulated devices, too.

It stands in the way of another `sitecustomize`, which is imported in its place.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec


def _board() -> None:
    """devlint need not be where this process finds modules."""
    place = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    sys.path.insert(0, place)
    try:
        from devlint.simulator.children import board_by_environment

        board_by_environment()
    except Exception as error:
        sys.stderr.write(f"warning: devlint does not follow a child process: {type(error).__name__}: {error}\n")
    finally:
        sys.path.remove(place)


def _give_way() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != here]
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        sys.modules["sitecustomize"] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules["sitecustomize"])


_board()
_give_way()
