"""``python -m tests.gpu`` on a machine with a GPU: measure everything, print a table, keep the results as JSON."""

from __future__ import annotations

import argparse
import datetime as dt
import json
import platform
import re
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

import devlint
from tests.gpu import against_profiler, fixtures, idioms, overhead, soak, training
from tests.gpu.scenarios import scenarios

RESULTS = Path(__file__).parent / "results"
PARTS = ["soak", "training", "idioms", "fixtures", "overhead", "counts"]


def main() -> int:
    """Run the parts that were asked for, all by default; 1 if anything disagreed."""
    parser = argparse.ArgumentParser(prog="python -m tests.gpu", description=__doc__)
    parser.add_argument("--only", choices=PARTS, action="append")
    parser.add_argument("--output", type=Path, help="a directory for the results; default: beside this file")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("no CUDA device to test with", file=sys.stderr)
        return 2
    parts = options.only or PARTS
    results: dict[str, Any] = environment()
    # the processes of these parts want the device for themselves, before this one has taken memory of it
    if "soak" in parts:
        results["soak"] = {"1 process, nccl": soak.soak(1, "nccl"), "2 processes, gloo": soak.soak(2, "gloo")}
    if "training" in parts:
        results["training"] = training.compare_all()
    if "idioms" in parts:
        results["idioms"] = idioms.differences()
    if "fixtures" in parts:
        results["fixtures"] = fixtures.differences()
    if "overhead" in parts:
        results["overhead"] = [asdict(row) for row in overhead.measure_all()]
    if "counts" in parts:
        results["counts"] = [asdict(against_profiler.compare(scenario)) for scenario in scenarios()]
    lines = list(judged(results))
    print("\n".join(line for line, _ in lines))
    directory = options.output or RESULTS
    directory.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[^a-z0-9.]+", "-", f"{results['card']} torch {results['torch']}".lower())
    (directory / f"{name}.json").write_text(json.dumps(results, indent=1) + "\n")
    return 0 if all(right for _, right in lines) else 1


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


def judged(results: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    """A line for everything that was measured, and whether it is as it should be."""
    for row in results.get("counts", ()):
        yield f"{row['name']:45} {row['blind'] or row['problem'] or 'agrees'}", not row["problem"]
    for name, differences in results.get("training", {}).items():
        yield f"{name:45} {'; '.join(differences) or 'as derived by hand'}", not differences
    for name, difference in (*results.get("idioms", {}).items(), *results.get("fixtures", {}).items()):
        yield f"{name:45} {difference}", False
    for row in results.get("overhead", ()):
        figures = f"{row['plain']:8.2f} ms, audited {row['audited']:8.2f} ms, x{row['ratio']:.3f}"
        yield f"{row['name']:45} {figures}", row["ratio"] <= row["bar"]
    for name, outcome in results.get("soak", {}).items():
        yield f"{name:45} {outcome}", outcome == "ok"


if __name__ == "__main__":
    sys.exit(main())
