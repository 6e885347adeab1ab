"""The compiled devlint: made once of what the sources are now, and proof that nothing else was measured in its place.

How to get one stands in docs/compiled.md. It is the same devlint: its compiled modules lie beside their sources, and
Python takes a source where it finds no compiled module for itself, without a word.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from functools import lru_cache
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path

from tests.benchmarks.measure import CommandFailedError

REPOSITORY = Path(__file__).resolve().parents[2]
_LIBRARIES = (".so", ".pyd")


@lru_cache
def place(environments: Path, root: Path = REPOSITORY) -> Path:
    """Where the compiled devlint lies: elsewhere as soon as the sources, or what compiles them, are not the same.

    A run that takes an hour goes on with the one that it began with.
    """
    digest = blake2b(f"{sys.version}\n{sys.platform}\n{mypyc()}\n".encode(), digest_size=8)
    for path in sorted([*(root / "devlint").rglob("*"), *(root / "tools" / "compiling").glob("*.py")]):
        if path.is_file() and path.parent.name != "__pycache__" and path.suffix not in _LIBRARIES:
            digest.update(f"{path.relative_to(root).as_posix()}\n{path.stat().st_size}\n".encode() + path.read_bytes())
    return environments / f"devlint-compiled-{digest.hexdigest()}"


def mypyc() -> str:
    """The release of the compiler, which is a part of mypy; empty if there is none."""
    return version("mypy") if importlib.util.find_spec("mypyc") else ""


def variables(folder: Path) -> dict[str, str]:
    """What makes a process run the devlint in a folder, and keep the bytecode of all that it runs there, too."""
    return {"PYTHONPATH": str(folder), "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}


def build(environments: Path) -> None:
    """Compile devlint, unless that has been done; one clear line says why if it cannot be done here."""
    folder = place(environments)
    if folder.exists():
        return
    if reason := missing():
        raise CommandFailedError(f"devlint cannot be compiled: {reason}")
    print("compiling devlint", file=sys.stderr)
    environments.mkdir(parents=True, exist_ok=True)
    # under its own name as soon as it is complete: nobody may find the half of it
    with tempfile.TemporaryDirectory(dir=environments) as scratch:
        made = Path(scratch) / "compiled"
        done = subprocess.run(
            [sys.executable, "-m", "tools.compiling", str(made)], cwd=REPOSITORY, capture_output=True, text=True,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        )  # fmt: skip
        if done.returncode:
            raise CommandFailedError(f"devlint cannot be compiled: {_reason(done.stdout + done.stderr)}")
        try:
            made.rename(folder)
        except OSError:
            if not folder.exists():  # else another run was faster
                raise


def missing() -> str:
    """What compiling takes and is not there, empty if nothing is missing.

    Elsewhere than on POSIX, setuptools has to look for a compiler itself.
    """
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")[0]
    if os.name == "posix" and not shutil.which(compiler):
        return f"there is no C compiler ({compiler})"
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        return "this Python has no headers for extensions"
    return "" if mypyc() else "mypy is not installed"


def _reason(output: str) -> str:
    """The line that says most: the last error that is not about a process in which there was one."""
    lines = [line.strip() for line in output.splitlines() if "rror: " in line and "CalledProcessError" not in line]
    last = (lines or output.strip().splitlines() or ["no reason given"])[-1]
    return last.rpartition("devlint cannot be compiled: ")[2]


def prove(folder: Path) -> None:
    """Fail if anything but the compiled devlint in a folder was run: it would have left its bytecode.

    All processes with those variables are held to it, so the measured ones need not say what they are.
    """
    bytecode = folder / "bytecode"
    ours = bytecode.joinpath(*folder.parts[1:], "devlint")
    packages = {path.parent for path in bytecode.rglob("devlint/__init__.*.pyc")}
    compiled = [path for path in (folder / "devlint").rglob("*") if path.suffix in _LIBRARIES]
    plain = [path for path in compiled if _ran(ours / path.parent.relative_to(folder / "devlint"), path)]
    if ours in packages and len(packages) == 1 and compiled and not plain:
        return
    # the next run is to be judged by what it does itself
    shutil.rmtree(bytecode, ignore_errors=True)
    others = sorted(str(Path("/", path.relative_to(bytecode))) for path in packages - {ours})
    sources = sorted(f"{path.name.partition('.')[0]}.py" for path in plain)
    what = ", ".join([*others, *sources]) or "something else"
    raise CommandFailedError(f"not the compiled devlint was measured, but {what}")


def _ran(bytecode: Path, library: Path) -> bool:
    """Whether there is bytecode of the source beside a compiled module."""
    return any(bytecode.glob(f"{library.name.partition('.')[0]}.*.pyc"))
