"""The Python that a project requires: the oldest that its own package metadata allow."""

from __future__ import annotations

import configparser
import os
import re
from collections.abc import Callable
from typing import Any, TypeAlias

from devlint.source.files import held, toml

Release: TypeAlias = tuple[int, int]
Known: TypeAlias = "dict[str, Release | None]"
"""What was found for directories."""
_ROOTS = (".git", ".hg", ".svn")
_LEAST = re.compile(r"(?:>=?|===?|~=?|\^)\s*(\d+)\.(\d+)")
_IN_SETUP = re.compile(r"\bpython_requires\s*=\s*[\"']([^\"'\n]+)")


def nearest(directory: str, known: Known) -> Release | None:
    """The oldest Python that the package around an absolute directory runs on, None where that is left open.

    The search ends where a repository begins; ``known`` keeps what was found.
    """
    if directory not in known:
        found, parent = _declared(directory), os.path.dirname(directory)
        outermost = parent == directory or any(os.path.lexists(os.path.join(directory, name)) for name in _ROOTS)
        known[directory] = found if found is not None or outermost else nearest(parent, known)
    return known[directory]


def oldest(bounds: str) -> Release | None:
    """The oldest Python within bounds as pip and Poetry spell them, None where they name none."""
    ways = [_LEAST.findall(way) for way in bounds.split("||")]
    found = [max((int(major), int(minor)) for major, minor in way) for way in ways if way]
    return min(found) if found and len(found) == len(ways) else None


def _declared(directory: str) -> Release | None:
    for name, reader in _READERS.items():
        file = os.path.join(directory, name)
        # a pipe of such a name would be waited for
        data = held(file) if os.path.isfile(file) else None
        if data is not None and b"python" in data:
            try:
                found = oldest(reader(data))
            except (ValueError, RecursionError, configparser.Error):
                continue
            if found is not None:
                return found
    return None


def _pyproject(data: bytes) -> str:
    document = toml(data)
    declared = _table(document, "project").get("requires-python")
    if declared is None:
        declared = _table(_table(_table(document, "tool"), "poetry"), "dependencies").get("python")
    return declared if isinstance(declared, str) else ""


def _setup_cfg(data: bytes) -> str:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(data.decode("utf-8-sig"))
    return parser.get("options", "python_requires", fallback="")


def _setup_py(data: bytes) -> str:
    match = _IN_SETUP.search(data.decode("utf-8", "replace"))
    return match[1] if match is not None else ""


def _table(parent: dict[str, Any], key: str) -> dict[str, Any]:
    value = parent.get(key)
    return value if isinstance(value, dict) else {}


_READERS: dict[str, Callable[[bytes], str]] = {
    "pyproject.toml": _pyproject,
    "setup.cfg": _setup_cfg,
    "setup.py": _setup_py,
}
