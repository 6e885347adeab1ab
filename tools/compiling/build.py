"""A compiled copy of devlint."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tools.compiling.rewriting import rewrite
from tools.compiling.selected import modules

ROOT = Path(__file__).resolve().parents[2]
_OPTIMIZATION = "1"
"""``-O3``, mypyc's own choice, takes twice as long, and brings nothing: the time goes into Python's own C code."""
_MYPY = """
[mypy]
ignore_missing_imports = True
ignore_errors = True

[mypy-devlint.simulator.*,devlint.auditor.*,devlint.server.*,devlint.testing.*,devlint.report.*]
follow_imports = skip
"""


def build(folder: Path, root: Path = ROOT) -> list[Path]:
    """Compile devlint in a new ``folder``, and tell the files of the compiled modules there."""
    shutil.copytree(root / "devlint", folder / "devlint", ignore=shutil.ignore_patterns("__pycache__", "*.so", "*.pyd"))
    paths = modules(folder)
    rewrite(folder, paths)
    (folder / "mypy.ini").write_text(_MYPY, encoding="utf-8")
    names = [path.relative_to(folder).as_posix() for path in paths]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-m", "tools.compiling.build", *names], cwd=folder, env=environment, check=True)
    for path in paths:
        shutil.copyfile(root / path.relative_to(folder), path)
    shutil.rmtree(folder / "build")
    return sorted(path for path in folder.rglob("*") if path.suffix in (".so", ".pyd"))


def _compile(names: list[str]) -> None:
    """Compile the modules of the current folder, beside their sources."""
    from mypyc.build import mypycify
    from setuptools import Distribution

    from tools.compiling.parallel import ParallelBuild

    extensions = mypycify(
        ["--config-file", "mypy.ini", *names], opt_level=_OPTIMIZATION, debug_level="0", multi_file=True,
        group_name="devlint",
    )  # fmt: skip
    command = ParallelBuild(Distribution({"name": "devlint", "ext_modules": extensions}))
    command.inplace = True
    command.ensure_finalized()
    command.run()


if __name__ == "__main__":
    _compile(sys.argv[1:])
