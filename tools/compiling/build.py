"""A compiled copy of devlint."""

from __future__ import annotations

import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

from tools.compiling.rewriting import rewrite
from tools.compiling.selected import modules

ROOT = Path(__file__).resolve().parents[2]
_OPTIMIZATION = "1"
"""``-O3``, mypyc's own choice, takes twice as long, and brings nothing: the time goes into Python's own C code."""
_MYPY = """
[mypy]
ignore_missing_imports = True
# the sources are checked by the tests; what is rewritten tells mypy a little less
ignore_errors = True

[mypy-devlint.simulator.*,devlint.auditor.*,devlint.server.*,devlint.testing.*,devlint.report.*]
follow_imports = skip
"""


class CompilingError(Exception):
    """Why there is no compiled devlint, in one line."""


def build(folder: Path, root: Path = ROOT) -> list[Path]:
    """Compile devlint in a new ``folder``, and tell the files of the compiled modules there.

    Raises CompilingError where the compiler, Python's headers, mypy or setuptools are missing, and where
    the sources have something that cannot be rewritten.
    """
    shutil.copytree(root / "devlint", folder / "devlint", ignore=shutil.ignore_patterns("__pycache__", "*.so", "*.pyd"))
    paths = modules(folder)
    try:
        rewrite(folder, paths)
    except ValueError as error:
        raise CompilingError(f"devlint cannot be compiled: {error}") from error
    (folder / "mypy.ini").write_text(_MYPY, encoding="utf-8")
    names = [path.relative_to(folder).as_posix() for path in paths]
    # not by PYTHONPATH: pip needs that, and takes from it where an editable devlint is installed
    begin = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tools.compiling import build; build.compile_here()"
    done = subprocess.run([sys.executable, "-c", begin, *names], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise CompilingError(f"devlint cannot be compiled: {_reason(done.stdout, done.stderr)}")
    for path in paths:
        shutil.copyfile(root / path.relative_to(folder), path)
    shutil.rmtree(folder / "build")
    return sorted(path for path in folder.rglob("*") if path.suffix in (".so", ".pyd"))


def _reason(*said: str) -> str:
    """The line of a build's output that says why it failed: that of a compiler, or the last one."""
    lines = [line.strip() for text in said for line in text.splitlines() if line.strip()] or ["no reason given"]
    reason = next((line for line in lines if " error: " in line), lines[-1].partition("Error: ")[2] or lines[-1])
    return textwrap.shorten(reason, 200, placeholder=" ...")


def compile_here() -> None:
    """Compile the modules of the current folder that the command line names, beside their sources."""
    from mypyc.build import mypycify
    from setuptools import Distribution

    from tools.compiling.parallel import ParallelBuild

    extensions = mypycify(
        ["--config-file", "mypy.ini", *sys.argv[1:]], opt_level=_OPTIMIZATION, debug_level="0", multi_file=True,
        group_name="devlint",
    )  # fmt: skip
    command = ParallelBuild(Distribution({"name": "devlint", "ext_modules": extensions}))
    command.inplace = True
    command.ensure_finalized()
    command.run()
