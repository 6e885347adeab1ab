"""Run what the pages show as a session on a terminal, and write what it printed below each command.

    python -m docs.transcripts            run them, and write what they print
    python -m docs.transcripts --check    write nothing; fail if they print something else, but for machine and date

A session is what stands behind `$ ` in the console blocks of a page, from its beginning to its end, in one directory. A
diff block is a change that the reader makes to the script. It takes git, and a torch to simulate the accelerator on.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from docs.sample import ROOT, environment

PAGES = tuple(ROOT / "docs" / name for name in ("getting-started.md", "adopting.md", "prove.md"))
BLOCK = re.compile(r"^```(console|diff)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SCRIPT = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_OF_THE_MACHINE = re.compile(r"^(  (torch|system|started) .*|mean loss .*)$", re.MULTILINE)
_COMMIT = "git -c user.name=t -c user.email=t@example.org commit --quiet -m x"


def execute(command: str, folder: Path) -> str:
    """What a command prints in a directory, on both streams."""
    done = subprocess.run(
        ["sh", "-c", f'devlint() {{ "$PYTHON" -m devlint "$@"; }}\n{command}'],
        cwd=folder,
        env=environment(PYTHON=sys.executable, TMPDIR=str(folder)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=300,
    )
    # An audit begins with an empty line, to stand apart from what the script has printed.
    printed = done.stdout.strip("\n")
    return f"{printed}\n" if printed else ""


def session(text: str, folder: Path, script: Path) -> str:
    """The text of a page with what its commands print there today."""

    def block(found: re.Match[str]) -> str:
        kind, body = found.groups()
        if kind == "diff":
            old, new = ("".join(line[1:] for line in body.splitlines(True) if line[0] in kept) for kept in (" -", " +"))
            before = (folder / script).read_text(encoding="utf-8")
            if before.count(old) != 1:
                raise SystemExit(f"error: the script has not this to change:\n{old}")
            (folder / script).write_text(before.replace(old, new), encoding="utf-8")
            return found[0]
        commands = [line for line in body.splitlines() if line.startswith("$ ")]
        if not commands:
            return found[0]
        printed = (f"{command}\n{execute(command[2:], folder)}" for command in commands)
        return f"```console\n{''.join(printed)}```"

    return BLOCK.sub(block, text)


def today(page: Path) -> str:
    """The text of a page, its session run where the page's script is, or in a repository of devlint's example."""
    text = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as name:
        folder, example = Path(name) / "project", SCRIPT.search(text)
        (folder / "src").mkdir(parents=True)
        if example is not None:
            (folder / "train.py").write_text(example[1], encoding="utf-8")
        else:
            (folder / "src" / "train.py").write_bytes((ROOT / "docs" / "train.py").read_bytes())
            execute(f"git init --quiet -b main && git add -A && {_COMMIT}", folder)
        return session(text, folder, Path("train.py"))


def main(arguments: list[str]) -> int:
    """Write or check the pages; the exit code is 1 if ``--check`` finds a difference."""
    stale = []
    for page in PAGES:
        shown, printed = page.read_text(encoding="utf-8"), today(page)
        if _OF_THE_MACHINE.sub("", shown) == _OF_THE_MACHINE.sub("", printed):
            continue
        stale.append(page)
        if "--check" in arguments:
            sys.stderr.write(f"{page.relative_to(ROOT)} is stale: run `python -m docs.transcripts`\n")
        else:
            page.write_text(printed, encoding="utf-8")
    return int("--check" in arguments and bool(stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
