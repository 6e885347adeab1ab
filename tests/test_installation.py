"""What `devlint info` tells for a report of a bug."""

from __future__ import annotations

import getpass
import os
import platform
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import devlint
from devlint.installation import PACKAGES

ROOT = Path(devlint.__file__).parents[1]


def told(**environment: str) -> dict[str, str]:
    command = [sys.executable, "-X", "importtime", "-m", "devlint", "info"]
    variables = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    done = subprocess.run(command, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not re.search(r"\| +(torch|libcst)$", done.stderr, re.MULTILINE)
    return dict(line.split(maxsplit=1) for line in done.stdout.splitlines())


def test_it_has_the_versions_and_imports_none_of_them() -> None:
    lines = told()
    assert lines["devlint"].split()[0] == devlint.__version__
    assert lines["Python"].split()[0] == platform.python_version()
    assert lines["torch"] == version("torch")
    assert lines["libcst"] == version("libcst")


def test_what_is_not_installed_is_no_error() -> None:
    script = "import devlint.installation as i; i.PACKAGES = ('no-such-package',); print(i.installed())"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1].split(maxsplit=1) == ["no-such-package", "not installed"], done.stderr


def test_it_has_neither_paths_nor_names() -> None:
    text = "\n".join(told().values())
    private = {getpass.getuser(), platform.node(), os.sep + "home", str(ROOT), sys.prefix}
    assert not [word for word in private if word and word in text]
    assert os.sep not in text


def test_it_asks_for_all_that_devlint_needs() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (needed,) = re.findall(r"^dependencies = \[\n(.*?)^\]", text, re.MULTILINE | re.DOTALL)
    names = re.findall(r'^ +"([\w-]+)(?!.*python_version)', needed, re.MULTILINE)
    optional = re.findall(r'^(?:audit|server) = \["([\w-]+)', text, re.MULTILINE)
    assert {*names, *optional} == {*PACKAGES}
