"""What is read: projects from the pinned wheels, a file of two lines, and collections of a given number of lines."""

from __future__ import annotations

import random
import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.ecosystem.wheels import WHEELS, chosen_wheels, unpacked

PROJECTS = ("timm", "ultralytics", "transformers")
SMALL = "two lines"
TWO_LINES = "import torch\nx = torch.ones(3).cuda()\n"
CURVE = (10, 30, 100, 300, 1000)
"""Thousands of lines."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """Files to be read; ``path`` is a directory, or the only one of them."""

    name: str
    path: Path
    files: int
    lines: int

    @property
    def changed(self) -> Path:
        """The file that somebody works on: the largest that is no `__init__.py`."""
        files = [self.path] if self.path.is_file() else self.path.rglob("*.py")
        return max((file for file in files if file.stem != "__init__"), key=lambda file: file.stat().st_size)


def corpus(name: str, wheels: Path, scratch: Path) -> Corpus:
    """A project, or the file of two lines, as a copy that can be changed; ``wheels`` keeps what is downloaded."""
    folder = scratch / name.replace(" ", "_")
    shutil.rmtree(folder, ignore_errors=True)
    if name == SMALL:
        folder.mkdir(parents=True)
        (folder / "two.py").write_text(TWO_LINES, encoding="utf-8")
        return _counted(name, folder / "two.py")
    (wheel,) = chosen_wheels([name])
    # under its own name: its files import from each other by that
    shutil.copytree(unpacked(wheel, wheels) / name, folder / name)
    return _counted(f"{name} {wheel.version}", folder / name)


def eighth(wheels: Path, scratch: Path) -> Corpus:
    """Every eighth file of transformers, for those who need half an hour for all of them."""
    whole = corpus("transformers", wheels, scratch)
    for place, file in enumerate(sorted(whole.path.rglob("*.py"))):
        if place % 8:
            file.unlink()
    return _counted(f"every eighth file of {whole.name}", whole.path)


def collection(thousands: int, wheels: Path, scratch: Path) -> Corpus:
    """So many thousand lines, drawn from the files of all pinned projects; a larger one holds the smaller ones."""
    folder = scratch / f"{thousands}_thousand"
    shutil.rmtree(folder, ignore_errors=True)
    files = [
        (file, unpacked(wheel, wheels))
        for wheel in WHEELS
        for file in sorted(unpacked(wheel, wheels).rglob("*.py"))
        if file.name != "__init__.py"
    ]
    random.Random(0).shuffle(files)
    lines = 0
    for file, root in files:
        if lines >= 1000 * thousands:
            break
        copy = folder / root.name.split("-")[0] / file.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)
        lines += file.read_bytes().count(b"\n")
    return _counted(f"{thousands:,}", folder)


def _counted(name: str, path: Path) -> Corpus:
    files = [path] if path.is_file() else list(path.rglob("*.py"))
    return Corpus(name, path, len(files), sum(file.read_bytes().count(b"\n") for file in files))
