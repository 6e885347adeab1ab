"""A dry run of a release: ``python -m tools.releasing FOLDER [--python PYTHON]...``.

It makes what this platform can make of a release, from a clean clone of the last commit: the sdist, the pure wheel of
that, and a compiled wheel for each Python.  Each is installed in an environment of its own and tried, and nothing is
published.  The wheels are for this machine: only cibuildwheel makes such that run on every Linux.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("build==1.6.1", "twine==7.0.0")


def main(arguments: list[str]) -> None:
    """Build all, try all, and list what there is; the first step that fails ends it."""
    parser = argparse.ArgumentParser(prog="python -m tools.releasing", description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path, help="where the files are left; it is made, and must not be there")
    parser.add_argument("--python", action="append", metavar="PYTHON", help="compile for these instead of this one")
    given = parser.parse_args(arguments)
    folder = given.folder.resolve()
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        sys.exit(f"error: {given.folder} exists")
    with tempfile.TemporaryDirectory(prefix="devlint-release-") as name:
        Path(name).chmod(0o755)  # as another user it is tried, too
        release(Path(name), folder, given.python or [sys.executable])
    for path in sorted(folder.iterdir()):
        print(f"{path.stat().st_size / 1e6:6.2f} MB  {path.name}")


def release(scratch: Path, folder: Path, pythons: list[str]) -> None:
    """Leave the files of a release in ``folder``."""
    clone = scratch / "clone"
    _run("git", "clone", "--quiet", "--depth=1", ROOT.as_uri(), clone)
    tools = _environment(scratch / "tools", sys.executable)
    _run(tools, "-m", "pip", "install", "--quiet", *TOOLS)
    _run(tools, "-m", "tools.releasing.notes", cwd=clone, quiet=True)
    _run(tools, "-m", "build", "--outdir", folder, clone, quiet=True)
    (sdist,), (pure,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    for number, python in enumerate(pythons):
        made = scratch / f"wheel{number}"
        environment = _environment(scratch / f"builder{number}", python)
        pip = [environment, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", made, sdist]
        _run(*pip, HATCH_BUILD_HOOK_ENABLE_CUSTOM="1")
        (compiled,) = made.iterdir()
        shutil.copy(compiled, folder)
        _try(scratch / f"compiled{number}", python, compiled, "--compiled")
        _try(scratch / f"pure{number}", python, pure, "--pure")
    _try(scratch / "from-sdist", pythons[0], sdist, "--pure")
    _run(tools, "-m", "twine", "check", "--strict", *sorted(folder.iterdir()))


def _try(place: Path, python: str, file: Path, kind: str) -> None:
    environment = _environment(place, python)
    _run(environment, "-m", "pip", "install", "--quiet", file)
    _run(environment, ROOT / "tools" / "releasing" / "smoke.py", kind)
    _run(environment, ROOT / "tools" / "releasing" / "bare.py")
    shutil.rmtree(place)


def _environment(place: Path, python: str) -> Path:
    """The Python of a new virtual environment."""
    _run(python, "-m", "venv", place)
    return place / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def _run(*command: str | Path, cwd: Path | None = None, quiet: bool = False, **variables: str) -> None:
    print("+", *command, flush=True)
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | variables
    output = subprocess.PIPE if quiet else None
    done = subprocess.run([*map(str, command)], cwd=cwd, env=environment, stdout=output, text=True)
    if done.returncode:
        sys.exit(f"{done.stdout or ''}error: this command failed with {done.returncode}")


if __name__ == "__main__":
    main(sys.argv[1:])
