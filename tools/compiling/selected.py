"""Which modules are compiled: the interpreter, what it gives to the rules, and how a project's files are read."""

from __future__ import annotations

from pathlib import Path

_MODULES = (
    *("source/syntax", "source/text", "source/tree"),
    # not its conditions, of which weak references are kept
    *("device/lattice", "device/wording"),
    *("check/project/project", "check/project/view", "check/project/modules", "check/project/definitions"),
    "check/suppressions",
)
_LEFT = ("flow/catalog/schema.py",)
"""What mypyc cannot compile, and reads each row once."""


def modules(root: Path) -> list[Path]:
    """The files of those modules, below the folder that holds the package ``devlint``."""
    package = root / "devlint"
    folders = {path for part in ("flow", "sites") for path in (package / part).rglob("*.py")}
    return [*sorted(folders - {package / name for name in _LEFT}), *(package / f"{name}.py" for name in _MODULES)]
