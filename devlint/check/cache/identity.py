"""Which devlint, and which Python, a result comes from."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder

from devlint import _about

_NO_PART = frozenset({"__pycache__", "auditor", "simulator"})
"""Folders of devlint that have no part in what ``devlint check`` finds."""


def identity() -> bytes | None:
    """What is different if anything in devlint, Python or LibCST is; ``None`` if devlint's own code cannot be read."""
    from hashlib import blake2b

    code = blake2b(digest_size=16)
    pieces = list(_recorded() or _written())
    if not pieces:
        return None
    for piece in (_about.__version__, sys.version, sys.platform, _libcst()):
        code.update(f"{piece}\n".encode())
    for data in pieces:
        code.update(data)
    return code.digest()


def _recorded() -> list[bytes]:
    """What the installer wrote down of devlint's files, with their hashes; nothing where it is not installed so."""
    package = _about.PACKAGE
    record = os.path.join(os.path.dirname(package), f"devlint-{_about.__version__}.dist-info", "RECORD")
    try:
        with open(record, "rb") as stream:
            return sorted(line for line in stream if line.startswith(b"devlint/") and b"__pycache__" not in line)
    except OSError:
        return []


def _written() -> Iterator[bytes]:
    """The files of devlint where somebody may be working on them."""
    for folder, below, names in os.walk(_about.PACKAGE):
        below[:] = sorted(set(below) - _NO_PART)
        for name in sorted(names):
            if name.endswith((".py", ".json", ".toml")):
                with open(os.path.join(folder, name), "rb") as stream:
                    yield f"\n{name}\n".encode() + stream.read()


def _libcst() -> str:
    """The release of LibCST, which writes the fixes, without importing it."""
    spec = PathFinder.find_spec("libcst")
    if spec is None or not spec.origin:
        return ""
    around = os.path.dirname(os.path.dirname(spec.origin))
    try:
        return " ".join(sorted(name for name in os.listdir(around) if name.startswith("libcst-")))
    except OSError:
        return ""
