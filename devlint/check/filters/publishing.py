"""Whether others install a project, so that they use what it does not use itself: its README says how."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence

from devlint.check.filters import project_files
from devlint.source.files import held

_PACKAGES = ("setup.py", "setup.cfg", "pyproject.toml")
_METADATA = re.compile(rb"^\[(?:project|tool\.poetry|tool\.flit\.metadata|metadata)\]|\bpackages\s*=", re.MULTILINE)
_NAME = re.compile(rb"(?:^|[(,])\s*name\s*=\s*[\"']?([\w.-]+)", re.MULTILINE)
_PUBLISHED = (
    rb"(?i)\b(?:pip3?|pipx|uv|poetry|pdm|conda|mamba|pixi)\b[^\n]*\b(?:install|add)\s(?![^\n]*(?:git\+|\s-e\b|--editable))(?:[^\n]*[\s\"'])?(?:%b)\b(?!/)"
    rb"|(?:pypi\.(?:org|python\.org)|img\.shields\.io/pypi|badge\.fury\.io/py|anaconda\.org|pepy\.tech)/[^\s)>\"]*\b(?:%b)\b"
)
"""How a README says that a package can be had from an index: the command, or a link to it."""


def root(folder: str) -> tuple[str, bool]:
    """Where the project of an absolute folder begins, empty if nobody knows, and whether it is published."""
    packages: list[bytes] = []
    for _ in range(project_files.HIGHEST):
        try:
            names = os.listdir(folder)
        except OSError:
            break
        texts = (held(os.path.join(folder, name)) or b"" for name in _PACKAGES if name in names)
        packages += [text for text in texts if _METADATA.search(text)]
        if project_files.begins(names):
            return folder, _is_published(folder, names, packages)
        folder = os.path.dirname(folder)
    return "", False


def declared(folder: str, names: Iterable[str]) -> set[str]:
    """The names under which the files of a folder say that it is packaged, as Python would import them."""
    texts = (held(os.path.join(folder, name)) or b"" for name in _PACKAGES if name in names)
    found = (name.decode() for text in texts for name in _NAME.findall(text))
    return {re.sub(r"[-.]", "_", name).lower() for name in found}


def _is_published(project: str, names: Iterable[str], packages: Sequence[bytes]) -> bool:
    """Whether a README says how others install a project: then they use what it does not use itself.

    What can be had from its repository alone, as most research code, is used there.
    """
    named = {
        b"[-_.]".join(map(re.escape, re.split(rb"[-_.]", name))) for one in packages for name in _NAME.findall(one)
    }
    called = b"|".join(sorted(named))
    readmes = (held(os.path.join(project, name)) or b"" for name in names if name.lower().startswith("readme"))
    return bool(called) and any(re.search(_PUBLISHED % (called, called), text) for text in readmes)
