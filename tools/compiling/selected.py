"""Which modules are compiled: the interpreter, what it gives to the rules, and how a project's files are read."""

from __future__ import annotations

from pathlib import Path

_MODULES = (
    *("device", "sites", "choosing", "misuses", "loader_sites", "placing", "syntax"),
    *("check/project", "check/modules", "check/suppress", "check/source", "check/definitions"),
)


def modules(root: Path) -> list[Path]:
    """The files of those modules, below the folder that holds the package ``devlint``."""
    package = root / "devlint"
    return [*sorted((package / "flow").glob("*.py")), *(package / f"{name}.py" for name in _MODULES)]
