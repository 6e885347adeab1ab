"""Prove the findings in the six released packages of ``python -m tests.ecosystem``, and keep what came of them.

    python -m tests.prove.wheels --wheel timm       # what is found in one of them, and kept in tests/prove/wheels.json
    python -m tests.prove.wheels                    # all six

The packages are imported: what they need has to be installed, each in the version that it wants.  Several runs in
several environments complete the file.  ``python -m docs.generate`` writes docs/prove.md from it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.ecosystem.reported import check
from tests.ecosystem.wheels import Wheel, chosen_wheels, default_cache, unpacked
from tests.prove.corpus import verdicts

KEPT = Path(__file__).with_name("wheels.json")
CODES = ",".join(f"DVL{number}" for number in range(101, 109))


def proven(wheel: Wheel, folder: Path, asked: bool) -> list[dict[str, Any]]:
    """What came of each finding of a wheel, by file and row; also those ``asked`` for if that is wanted."""
    files = sorted({finding.identity.path for finding in check(folder, ["--select", CODES])})
    results = []
    for finding, verdict in verdicts([str(folder / file) for file in files], asked):
        place = Path(finding.filename).relative_to(folder).as_posix()
        text = verdict.text.replace(f"{folder}/", "")
        found = {"file": place, "row": finding.span.row, "code": finding.code, "asked": finding.asked}
        results.append({**found, "kind": verdict.kind, "text": text, "script": verdict.script.partition("\n")[2]})
        print(f"{place}:{finding.span.row} {finding.code} {verdict.kind}: {text}", flush=True)
    return results


def load() -> dict[str, dict[str, Any]]:
    """What is kept, by wheel."""
    found: dict[str, dict[str, Any]] = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.is_file() else {}
    return found


def table() -> str:
    """What is kept, as Markdown: how many findings of each package are confirmed, and what comes of the others."""
    rows = ["| package | findings | confirmed | refuted | not shown |", "|---|---|---|---|---|"]
    total: Counter[str] = Counter()
    for name, wheel in load().items():
        kinds = Counter(one["kind"] for one in wheel["findings"] if not one["asked"])
        total += kinds
        rows.append(_row(f"{name} {wheel['version']}", kinds))
    rows += [_row("all", total), "", "| what is not confirmed | |", "|---|---|", *_others()]
    return "\n".join(rows) + "\n"


def _row(name: str, kinds: Counter[str]) -> str:
    cells = (kinds.total(), kinds["confirmed"], kinds["refuted"], kinds["not shown"])
    return f"| {name} | {' | '.join(map(str, cells))} |"


def _others() -> Iterator[str]:
    for wheel in load().values():
        for one in wheel["findings"]:
            if one["kind"] != "confirmed" and not one["asked"]:
                text = one["text"].replace("|", "\\|")
                yield f"| `{one['file']}:{one['row']}` {one['code']} | {one['kind']}: {text} |"


def main() -> int:
    """Prove, print, and keep."""
    parser = argparse.ArgumentParser(
        "python -m tests.prove.wheels", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--wheel", action="append", default=[], metavar="NAME", help="only this one (may be repeated)")
    parser.add_argument("--cache", "--folder", type=Path, default=default_cache(), metavar="DIR", help="where they are")
    parser.add_argument("--asked", action="store_true", help="also what only who selects the rule is told; not kept")
    options = parser.parse_args()
    for wheel in chosen_wheels(options.wheel):
        results = proven(wheel, unpacked(wheel, options.cache), options.asked)
        if not options.asked:
            kept = {**load(), wheel.name: {"version": wheel.version, "findings": results}}
            KEPT.write_text(json.dumps(dict(sorted(kept.items())), indent=1) + "\n", encoding="utf-8")
        print(wheel.name, dict(Counter(one["kind"] for one in results)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
