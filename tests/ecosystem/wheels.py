"""The pinned wheels: where they come from, and where they lie once unpacked."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from .errors import EcosystemError


@dataclass(frozen=True, slots=True)
class Wheel:
    """A release of a project, and the one file of it that was reviewed."""

    name: str
    version: str
    sha256: str

    @property
    def filename(self) -> str:
        """The name of the file; all of the pinned wheels are pure Python."""
        return f"{self.name}-{self.version}-py3-none-any.whl"


WHEELS = (
    Wheel("timm", "1.0.31", "5bd50f7d0fe6d09bf9285ac2523234a1b7e6bf075c0be3e7aed09139fcb617c7"),
    Wheel("ultralytics", "8.4.190", "bd309728efa168af64d39040136828edd2dbcb4aeceb4510bdff4f3ca0ea01b8"),
    Wheel("accelerate", "1.15.0", "97eacca0b73e45cb867dbf8c5d5d4dc32219544300e0c8992c7334dc2ef33cec"),
    Wheel("lightning", "2.6.6", "2bcbd6ee840071cd076c7dc9953d7ac1040df92f1c5fa76583aae644f037ab85"),
    Wheel("diffusers", "0.42.1", "9154faa704ce00e0b77f568e0d64786064368528aab5fc14eeea92f87d788014"),
    Wheel("transformers", "4.57.1", "b10d05da8fa67dc41644dbbf9bc45a44cb86ae33da6f9295f5fbf5b7890bd267"),
)


def chosen_wheels(names: list[str]) -> tuple[Wheel, ...]:
    """The wheels called ``names``, or all of them if no name is given."""
    unknown = set(names) - {wheel.name for wheel in WHEELS}
    if unknown:
        known = ", ".join(wheel.name for wheel in WHEELS)
        raise EcosystemError(f"no such wheel: {', '.join(sorted(unknown))} (there are {known})")
    return tuple(wheel for wheel in WHEELS if not names or wheel.name in names)


def default_cache() -> Path:
    """A folder for downloads where this platform keeps what can be downloaded again."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "devlint-ecosystem"


def unpacked(wheel: Wheel, cache: Path) -> Path:
    """The folder with the contents of ``wheel``, downloaded and unpacked if it is not there yet."""
    folder = cache.resolve() / f"{wheel.name}-{wheel.version}-{wheel.sha256[:12]}"
    if not folder.is_dir():
        file = _download(wheel, cache)
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            contents = Path(scratch) / "contents"
            with zipfile.ZipFile(file) as archive:
                archive.extractall(contents)
            contents.rename(folder)  # in one step: an interrupted run leaves no half-unpacked wheel behind
    return folder


def _download(wheel: Wheel, cache: Path) -> Path:
    """The wheel's file in ``cache``, checked against its pinned hash."""
    cache.mkdir(parents=True, exist_ok=True)
    file = cache / wheel.filename
    if not file.is_file():
        print(f"downloading {wheel.filename}", file=sys.stderr)
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]
        any_python = ["--only-binary=:all:", "--ignore-requires-python"]  # the wheel is read, never run
        requirement = f"{wheel.name}=={wheel.version}"
        done = subprocess.run([*pip, *any_python, "--dest", str(cache), requirement], capture_output=True, text=True)
        if done.returncode or not file.is_file():
            reason = (done.stderr.strip().splitlines() or ["the file has another name"])[-1]
            raise EcosystemError(f"pip could not download {requirement}: {reason}")
    found = hashlib.sha256(file.read_bytes()).hexdigest()
    if found != wheel.sha256:
        raise EcosystemError(
            f"{file} has the hash {found}, and {wheel.sha256} is pinned; delete the file and try again"
        )
    return file
