"""Programs about which linter and run once disagreed, as small as they get; none of them may do so again.

python -m tests.accuracy.fuzz.regressions
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.accuracy.fuzz.comparing import Disagreement, compare
from tests.accuracy.fuzz.generate import HEADER
from tests.accuracy.fuzz.program import Line, Program

FOLDER = Path(__file__).parents[3] / "fixtures" / "fuzz"
PROGRAMS = {path.stem.replace("-", " "): path.read_text("utf-8") for path in sorted(FOLDER.glob("*.py"))}


def main() -> None:
    """Print what each program's disagreement is, if there is one, as JSON."""
    found: dict[str, str | None] = {}
    for name, code in PROGRAMS.items():
        lines = HEADER + code.strip()
        program = Program(tuple(map(Line, lines.splitlines())), ("word1",) if "word1" in code else ())
        try:
            compare(program)
        except Disagreement as disagreement:
            found[name] = str(disagreement)
        else:
            found[name] = None
    print(json.dumps(found))


if __name__ == "__main__":
    main()
