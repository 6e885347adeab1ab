"""``python -m tests.gpu`` on a machine with a GPU: measure everything, print a table, keep the results as JSON.

The results are written after each part, beside those of parts that were measured before.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import platform
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

import devlint
from tests.gpu.parts import PARTS
from tests.gpu.processes import collect

RESULTS = Path(__file__).parent / "results"
LIMIT = 560
_LEAST = 20
"""With fewer seconds left no part is begun."""


def main() -> int:
    """Run the parts that were asked for, all by default; 1 if anything disagreed."""
    parser = argparse.ArgumentParser(prog="python -m tests.gpu", description=__doc__)
    parser.add_argument("--only", choices=PARTS, action="append")
    parser.add_argument("--output", type=Path, help="a directory for the results; default: beside this file")
    parser.add_argument("--limit", type=int, default=LIMIT, help="seconds for all of it (%(default)s)")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("no CUDA device to test with", file=sys.stderr)
        return 2
    ran = environment()
    file = (options.output or RESULTS) / f"{file_name(ran)}.json"
    right = True
    deadline = time.monotonic() + options.limit
    for name in options.only or PARTS:
        part = measure(name, min(PARTS[name].seconds, deadline - time.monotonic()))
        keep(file, ran, name, part)
        for line, good in judged(name, part):
            right &= good
            print(line, flush=True)
    return 0 if right else 1


def measure(name: str, seconds: float) -> dict[str, Any]:
    """``results`` by name, ``trouble`` with the part as a whole, and how many ``seconds`` it took."""
    if seconds < _LEAST:
        return {"results": {}, "trouble": "was not begun: there was no time left", "seconds": 0}
    start = time.monotonic()
    results, trouble = collect([sys.executable, "-m", "tests.gpu.parts", name], seconds)
    return {"results": results, "trouble": trouble, "seconds": round(time.monotonic() - start)}


def keep(file: Path, ran: dict[str, Any], name: str, part: dict[str, Any]) -> None:
    """Add a part to the results, which are never half written."""
    file.parent.mkdir(parents=True, exist_ok=True)
    before = json.loads(file.read_text()) if file.exists() else {}
    if not part["results"] and before.get(name, {}).get("results"):
        return  # what is known already is worth more
    whole = {**before, **ran, name: {**part, "date": ran["date"]}}
    beside = file.with_suffix(".new")
    beside.write_text(json.dumps(whole, indent=1) + "\n")
    os.replace(beside, file)


def environment() -> dict[str, Any]:
    """Card, versions and date."""
    return {
        "card": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "python": platform.python_version(),
        "devlint": devlint.__version__,
        "date": dt.datetime.now(dt.timezone.utc).date().isoformat(),
    }


def file_name(ran: dict[str, Any]) -> str:
    """The results of a card and a version of torch have one file."""
    return re.sub(r"[^a-z0-9.]+", "-", f"{ran['card']} torch {ran['torch']}".lower())


def judged(name: str, part: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    """A line for everything that was measured, and whether it is as it should be."""
    for job, result in part["results"].items():
        if isinstance(result, dict) and result.get("problem"):
            yield f"{job:45} {result['problem']}", False
        else:
            yield from _JUDGES[name](job, result)
    if part["trouble"]:
        yield f"{name:45} {part['trouble']}", False


def _count(name: str, row: Any) -> Iterator[tuple[str, bool]]:
    yield f"{name:45} {row['blind'] or 'agrees'}", True


def _script(name: str, differences: Any) -> Iterator[tuple[str, bool]]:
    yield f"{name:45} {'; '.join(differences) or 'as derived by hand'}", not differences


def _each(name: str, differences: Any) -> Iterator[tuple[str, bool]]:
    yield f"{name:45} {len(differences) or 'no'} differences", not differences
    for what, difference in differences.items():
        yield f"  {what:43} {difference}", False


def _cost(name: str, row: Any) -> Iterator[tuple[str, bool]]:
    figures = f"{row['plain']:8.2f} ms, audited {row['audited']:8.2f} ms, x{row['ratio']:.3f}"
    yield f"{name:45} {figures}, x{row['whole']:.3f} while steps are recorded whole", row["ratio"] <= row["bar"]


def _outcome(name: str, outcome: Any) -> Iterator[tuple[str, bool]]:
    yield f"{name:45} {outcome}", outcome == "ok"


_JUDGES = {
    "counts": _count,
    "training": _script,
    "idioms": _each,
    "fixtures": _each,
    "overhead": _cost,
    "soak": _outcome,
}


if __name__ == "__main__":
    sys.exit(main())
