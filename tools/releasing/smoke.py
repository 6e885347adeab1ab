"""Try an installed devlint, as its user would: ``python smoke.py [--compiled | --pure]``.

It stands by itself, and needs nothing but the Python that devlint is installed for.  The first thing that is not as it
has to be ends it with a line that says so.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

BAD = "import torch\n\n\ndef f(device, x: torch.Tensor):\n    x.to(device)\n    return x\n"
GOOD = BAD.replace("    x.to", "    x = x.to")
CHECK = ("check", "--isolated", "--no-cache", "--output-format", "concise")


def main(arguments: list[str]) -> None:
    """Look at the version, at each exit code, and at the ways to start it."""
    parser = argparse.ArgumentParser(description=__doc__)
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--compiled", action="store_true", help="it has to be compiled")
    kind.add_argument("--pure", action="store_true", help="it must not be")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "bad.py").write_text(BAD, encoding="utf-8")
        (folder / "good.py").write_text(GOOD, encoding="utf-8")
        version = _run(folder, 0, "--version")
        if given.pure if "(compiled)" in version else given.compiled:
            sys.exit(f"smoke: this devlint is of the wrong kind: {version.strip()}")
        found = _run(folder, 1, *CHECK, "bad.py")
        if "bad.py:5:5: DVL102 " not in found:
            sys.exit(f"smoke: DVL102 is not where it has to be: {found!r}")
        _run(folder, 0, *CHECK, "good.py")
        _run(folder, 2, *CHECK, "gone.py")
        _run(folder, 0, "rule", "DVL102")
        print(_run(folder, 0, "info"), end="")


def _run(folder: Path, code: int, *arguments: str) -> str:
    """What devlint prints, as a module and as a program; both have to say the same."""
    program = Path(sysconfig.get_path("scripts"), "devlint.exe" if os.name == "nt" else "devlint")
    # not a devlint that lies around: what is installed
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    printed = []
    for command in ([sys.executable, "-m", "devlint"], [str(program)]):
        done = subprocess.run(
            [*command, *arguments], cwd=folder, env=environment, capture_output=True, text=True, encoding="utf-8"
        )
        if done.returncode != code or "Traceback" in done.stderr:
            words = " ".join([*command, *arguments])
            sys.exit(f"smoke: {words}: {done.returncode} instead of {code}\n{done.stdout}{done.stderr}")
        printed.append(done.stdout)
    if printed[0] != printed[1]:
        sys.exit(f"smoke: `python -m devlint` and `devlint` differ: {printed!r}")
    return printed[0]


if __name__ == "__main__":
    main(sys.argv[1:])
