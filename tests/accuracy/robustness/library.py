"""CPython's own library with its tests, which hold what is odd, and what is broken on purpose."""

from __future__ import annotations

import re
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from devlint.source.text import ParseFailure, decode
from tests.accuracy.robustness.trial import Tally, attempt

_DEFINITION = re.compile(r"^([ \t]*(?:(?:async[ \t]+)?def|class)[ \t].*:)[ \t]*$", re.MULTILINE)
_IMPORT = re.compile(r"^([ \t]*)import (\w+)[ \t]*$", re.MULTILINE)
_FROM = re.compile(r"^([ \t]*)from \w+ import ", re.MULTILINE)


def files(folder: Path | None = None) -> list[Path]:
    """The Python files of a library, of the running Python's by default; what was installed into it is left out."""
    root = folder or Path(sysconfig.get_paths()["stdlib"])
    return [path for path in sorted(root.rglob("*.py")) if "site-packages" not in path.parts]


def tried(paths: Sequence[Path]) -> Tally:
    """What comes of some files, as they are and as if they were about torch."""
    tally = Tally()
    for path in paths:
        text = decode(path.read_bytes())
        if isinstance(text, ParseFailure):
            tally.counts["undecodable"] += 1
            continue
        attempt(tally, str(path), text, thorough=False)
        attempt(tally, f"{path}, about torch", about_torch(text), thorough=False)
    return tally


def about_torch(text: str) -> str:
    """The text with its imports taken for torch, and every definition worth a look: all of it is interpreted."""
    text = _DEFINITION.sub(r"\1  # cuda", text)
    return _FROM.sub(r"\1from torch import ", _IMPORT.sub(r"\1import torch as \2", text))
