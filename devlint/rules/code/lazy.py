"""LibCST, loaded when it is first used: it is slow to import, and most findings need no fix of a call."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__all__ = ["cst"]

if TYPE_CHECKING:
    import libcst as cst
else:

    class _Lazy:
        def __getattr__(self, name: str) -> Any:
            return getattr(importlib.import_module("libcst"), name)

    cst = _Lazy()
