"""Derive devlint's table of torch functions and modules from the installed torch.

    python -m tools.make_device_table            write devlint/flow/catalog/data/torch_table.json
    python -m tools.make_device_table OUT        write it elsewhere
    python -m tools.make_device_table --check    write nothing; fail if the committed table says anything else

No accelerator is needed. It takes a minute or two, and the packages `torch`, `expecttest`, `scipy` and `PyYAML`.
"""

from __future__ import annotations

import argparse
import difflib
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tools.device_table.build import build
from tools.device_table.render import render

COMMITTED = Path(__file__).resolve().parent.parent / "devlint" / "flow" / "catalog" / "data" / "torch_table.json"
_SHOWN_LINES = 40


def main(argv: list[str] | None = None) -> int:
    """Write or check the table; the exit code is 1 if `--check` finds a difference."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    parser.add_argument("out", nargs="?", type=Path, default=COMMITTED, metavar="OUT")
    options = parser.parse_args(argv)
    started = time.monotonic()

    def progress(message: str) -> None:
        print(f"{time.monotonic() - started:4.0f} s  {message}", file=sys.stderr)

    table = build(progress)
    text = render(table)
    _summarise(table)
    if options.check:
        return _compare(options.out, text)
    options.out.write_text(text, encoding="utf-8")
    print(f"wrote {options.out}, {len(text):,} bytes", file=sys.stderr)
    return 0


def _summarise(table: dict[str, Any]) -> None:
    functions = table["functions"].values()
    rules = Counter(entry["rule"] for entry in functions)
    print(f"torch {table['torch']}: {len(functions)} functions, {len(table['modules'])} modules", file=sys.stderr)
    print("rules: " + ", ".join(f"{rule} {count}" for rule, count in rules.most_common()), file=sys.stderr)
    for fact in ("rejects_cpu", "accepts_cpu", "sync", "must_be_cpu"):
        having = [entry[fact] for entry in functions if entry.get(fact)]
        print(f"{fact}: {len(having)} functions", file=sys.stderr)


def _compare(path: Path, text: str) -> int:
    committed = path.read_text(encoding="utf-8")
    if committed == text:
        print(f"{path.name} is what this torch says", file=sys.stderr)
        return 0
    difference = list(
        difflib.unified_diff(committed.splitlines(), text.splitlines(), "committed", "generated", n=0, lineterm="")
    )
    print("\n".join(difference[:_SHOWN_LINES]))
    print(
        f"{path.name} differs from what this torch says, in {len(difference)} lines: "
        "run `python -m tools.make_device_table` and look at the difference",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
