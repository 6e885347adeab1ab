"""devlint finds PyTorch device bugs in code as it is read and as it is run.

PYTEST_DONT_REWRITE: processes that a simulated one starts import it before pytest, which is not to warn of that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from devlint._about import __version__

if TYPE_CHECKING:
    from devlint.audit_context import Audit as audit  # noqa: N813  # it is used as a function is
    from devlint.audit_context import AuditError
    from devlint.check.analysis import check_source
    from devlint.check.engine import check_paths

__all__ = ["AuditError", "__version__", "audit", "check_paths", "check_source"]


def __getattr__(name: str) -> object:
    # The engine pulls in the whole analysis; `devlint --version` and `import devlint` shall not pay for it.
    if name == "check_paths":
        from devlint.check.engine import check_paths

        return check_paths
    if name == "check_source":
        from devlint.check.analysis import check_source

        return check_source
    if name in ("audit", "AuditError"):
        from devlint import audit_context

        return audit_context.Audit if name == "audit" else audit_context.AuditError
    raise AttributeError(f"module 'devlint' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
