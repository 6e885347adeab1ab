"""devlint finds PyTorch device bugs in code as it is read and as it is run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from devlint.check.engine import check_paths, check_source

__all__ = ["__version__", "check_paths", "check_source"]
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    # The engine pulls in the whole analysis; `devlint --version` and `import devlint` shall not pay for it.
    if name in ("check_paths", "check_source"):
        from devlint.check import engine

        return getattr(engine, name)
    raise AttributeError(f"module 'devlint' has no attribute {name!r}")
