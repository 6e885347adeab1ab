"""What a report of a bug has to say of the machine: versions, and neither paths nor names."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from devlint._about import __version__, is_compiled

PACKAGES = ("click", "libcst", "msgspec", "pathspec", "PyYAML", "rich", "pygls", "torch")
"""What devlint itself asks for, what its server needs, and torch."""


def installed() -> str:
    """A line for each of them; no package is imported, since one that fails to import may be what is reported."""
    lines = {
        "devlint": f"{__version__} ({'compiled' if is_compiled() else 'pure Python'})",
        "Python": f"{platform.python_version()} ({platform.python_implementation()})",
        "platform": f"{platform.system()} {platform.machine()}",
        **{name: _version(name) for name in PACKAGES},
    }
    width = max(map(len, lines))
    return "\n".join(f"{name:{width}}  {value}" for name, value in lines.items())


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
