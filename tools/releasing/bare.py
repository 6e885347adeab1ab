"""Try an installed devlint on a bare machine, as far as this one can be made one: ``python bare.py``.

It stands by itself, as smoke.py does.  There is no git, no compiler and no network; what is checked, the home and the
folder for temporary files cannot be written; where root tries it, another user runs it.  What this system cannot take
away is said.  A command has to answer as it does elsewhere, or to say in one line why it cannot.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import NamedTuple

BAD = "import torch\n\n\ndef \u00e9t\u00e9(device, x: torch.Tensor):\n    x.to(device)\n    return x\n"
NOBODY = "65534"
WRITING = "the right to write"
PROGRAM = Path(sysconfig.get_path("scripts"), "devlint.exe" if os.name == "nt" else "devlint")
REACHED = "import sys, click, libcst; open(sys.argv[1])"
ELSEWHERE = os.path.join(os.sep, "nonexistent")
CHECK = ("check", "--isolated", "--output-format", "concise")
SITUATIONS: dict[str, dict[str, str | None]] = {
    "a home that is read-only": {},
    "a home that is not there": {"HOME": ELSEWHERE, "USERPROFILE": ELSEWHERE, "LOCALAPPDATA": ELSEWHERE},
    "no home": {"HOME": None, "USERPROFILE": None, "LOCALAPPDATA": None},
    "no folder for temporary files": {"TMPDIR": ELSEWHERE, "TEMP": ELSEWHERE, "TMP": ELSEWHERE},
    "a locale of ASCII": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "warnings that are errors": {"PYTHONWARNINGS": "error"},
}


class Command(NamedTuple):
    """What is started, the status it has to end with, and expressions for all of what it prints and says."""

    arguments: tuple[str, ...]
    status: int
    prints: str
    says: str = ""
    writes: bool = False
    """Whether it would do otherwise if it could write."""


FOUND = r"bad\.py:5:5: DVL102 .*"
COMMANDS = (
    Command((*CHECK, "."), 1, FOUND),
    Command((*CHECK, "--no-cache", "bad.py"), 1, FOUND),
    Command(
        (*CHECK, "--fix", "--unsafe-fixes", "bad.py"), 2, FOUND, r"error: bad\.py: nothing was fixed: [^\n]+\n", True
    ),
    Command(
        (*CHECK, "--output-file", "found.txt", "bad.py"), 2, "", r"error: --output-file: found\.txt: [^\n]+\n", True
    ),
    Command((*CHECK, "--since", "main", "bad.py"), 2, "", r"error: --since: git is not installed\n"),
    Command(("where", "bad.py:5:x"), 0, "`x` is .*"),
    Command(("rule", "DVL102"), 0, "# DVL102 .*"),
    Command(("info",), 0, "devlint .*"),
)


def main() -> None:
    """Run each command in each situation; the first that answers otherwise ends it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "bad.py").write_text(BAD, encoding="utf-8")
        (folder / "bad.py").chmod(0o444)
        folder.chmod(0o555)
        try:
            confinement, missing = confine(folder)
            commands = [command for command in COMMANDS if not (command.writes and WRITING in missing)]
            for situation, changes in SITUATIONS.items():
                for command in commands:
                    attempt(situation, command, confinement, environment(folder, changes), folder)
        finally:
            folder.chmod(0o755)  # so that it can be removed
    left = f"; not taken away: {', '.join(missing)}" if missing else ""
    print(f"bare: {len(SITUATIONS) * len(commands)} commands answer{left}")


def confine(folder: Path) -> tuple[list[str], list[str]]:
    """The words before a command that take away what they can, and what they cannot take away."""
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    steps = [("the network", ["unshare", *([] if root else ["--user", "--map-current-user"]), "--net"])]
    if root:
        steps.append(("root's rights", ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]))
    words: list[str] = []
    missing: list[str] = []
    for what, (name, *options) in steps:
        more = [*words, shutil.which(name) or name, *options]
        # another user may not reach what is installed here, and an interpreter that cannot read its pyvenv.cfg starts
        # without what the environment holds
        if _works([*more, sys.executable, "-c", REACHED, str(PROGRAM)], folder):
            words = more
        else:
            missing.append(what)
    if _works([*words, sys.executable, "-c", "open('written', 'w')"], folder):
        (folder / "written").unlink()
        missing.append(WRITING)
    return words, missing


def _works(command: list[str], folder: Path) -> bool:
    try:
        return not subprocess.run(command, cwd=folder, capture_output=True).returncode
    except OSError:
        return False


def environment(folder: Path, changes: dict[str, str | None]) -> dict[str, str]:
    """Only what a system cannot do without, what a situation changes, and no folder with programs."""
    kept = {key: os.environ[key] for key in ("SYSTEMROOT", "LANG") if key in os.environ}
    whole = {
        **kept,
        "PATH": ELSEWHERE,
        "HOME": str(folder),
        "USERPROFILE": str(folder),
        "TMPDIR": str(folder),
        **changes,
    }
    return {key: value for key, value in whole.items() if value is not None}


def attempt(situation: str, command: Command, confinement: list[str], variables: dict[str, str], folder: Path) -> None:
    """Run one, and exit with what is wrong if anything is."""
    words = [*confinement, str(PROGRAM), *command.arguments]
    done = subprocess.run(words, cwd=folder, env=variables, capture_output=True, text=True, encoding="utf-8")
    right = (
        done.returncode == command.status
        and re.fullmatch(command.prints, done.stdout, re.DOTALL)
        and re.fullmatch(command.says, done.stderr)
    )
    if not right:
        line = " ".join(("devlint", *command.arguments))
        sys.exit(
            f"bare: {line}, with {situation}: {done.returncode} instead of {command.status}\n{done.stdout}{done.stderr}"
        )


if __name__ == "__main__":
    main()
