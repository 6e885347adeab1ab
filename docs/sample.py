"""Write the report of a run of docs/digits.py into docs/audit.md, as `devlint audit --simulate` prints it.

    python -m docs.sample            run it, and write its report
    python -m docs.sample --check    write nothing; fail if it is another one, but for versions, machine and date
    python -m docs.sample --picture  write docs/html-report.png, the same report in a browser (needs Chromium)

It takes a torch that the accelerator can be simulated on.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "audit.md"
COMMAND = ["audit", "--simulate", "--isolated", "docs/digits.py"]
BEGIN, END = "<!-- report: written by docs/sample.py -->\n```text\n", "```\n<!-- end of report -->"
PICTURE = ROOT / "docs" / "html-report.png"
SIZE = "1160,1930"
"""Width and height of the picture: from the head of the page to the end of the source."""
_OF_THE_MACHINE = re.compile(r"^  (torch|system|started) .*$", re.MULTILINE)


def environment(**more: str) -> dict[str, str]:
    """That of a command whose output a page shows, with more variables."""
    plain = {"COLUMNS": "100", "NO_COLOR": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    kept = {name: value for name, value in os.environ.items() if name != "FORCE_COLOR"}
    return {**kept, **plain, **more}


def report(*options: str) -> str:
    """What the audit prints."""
    done = subprocess.run(
        [sys.executable, "-m", "devlint", *COMMAND[:-1], *options, COMMAND[-1]],
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        timeout=300,
    )
    if done.returncode != 1:  # it finds something
        raise SystemExit(f"error: the audit ended with {done.returncode}:\n{done.stderr}")
    return done.stderr.lstrip()


def draw(picture: Path) -> None:
    """Write the picture of the report in a browser."""
    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("error: there is no chromium here")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        report("--html", str(page))
        switches = "--headless --no-sandbox --disable-gpu --hide-scrollbars --virtual-time-budget=5000".split()
        switches += [f"--user-data-dir={folder}/profile", f"--window-size={SIZE}", f"--screenshot={picture}"]
        subprocess.run([chromium, *switches, page.as_uri()], check=True, capture_output=True, timeout=120)


def main(arguments: list[str]) -> int:
    """Write or check the report; the exit code is 1 if ``--check`` finds a difference."""
    if "--picture" in arguments:
        draw(PICTURE)
        return 0
    text = PAGE.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    written, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"error: docs/audit.md lacks the lines {BEGIN!r} and {END!r}")
    printed = report()
    if _OF_THE_MACHINE.sub("", written) == _OF_THE_MACHINE.sub("", printed):
        return 0
    if "--check" in arguments:
        sys.stderr.write("the report in docs/audit.md is stale: run `python -m docs.sample`\n")
        return 1
    PAGE.write_text(f"{before}{begin}{printed}{end}{after}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
