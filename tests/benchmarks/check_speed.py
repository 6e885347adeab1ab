"""Measure ``devlint check`` beside bare ``ast.parse`` and ``libcst.parse_module`` over the same files, in one run.

``python -m tests.benchmarks.check_speed`` takes timm from the pinned wheels of ``tests.ecosystem``, runs each of the
three in a fresh process, in turns, and prints a table of CPU seconds. devlint promises to read code with less work than
LibCST alone needs to parse it: if that does not hold, the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from importlib.metadata import version
from pathlib import Path

from tests.benchmarks.measure import CommandFailedError, Summary, interleaved
from tests.ecosystem.errors import EcosystemError
from tests.ecosystem.reported import COLD_CHECK, REPOSITORY
from tests.ecosystem.wheels import chosen_wheels, default_cache, unpacked

HERE = Path(__file__).resolve().parent
AST, LIBCST, DEVLINT = "ast.parse", "libcst.parse_module", "devlint check -j 1, cold"


def main() -> int:
    """0 if the promise holds, 1 if it does not, 2 if nothing could be measured."""
    options = _options()
    results: dict[str, dict[str, Summary]] = {}
    headings = []
    try:
        for wheel in chosen_wheels(options.wheel or ["timm"]):
            folder = unpacked(wheel, options.cache)
            results[f"{wheel.name} {wheel.version}"] = _measure(folder, options)
            headings.append(_heading(folder))
    except (EcosystemError, CommandFailedError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    tables = [f"{heading}\n\n{table(*result)}" for heading, result in zip(headings, results.items(), strict=True)]
    print(as_json(results) if options.json else "\n\n".join(tables))
    return int(any(ratio(result) > options.max_ratio for result in results.values()))


def _options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser("python -m tests.benchmarks.check_speed", description=__doc__)
    add = parser.add_argument
    add("--wheel", action="append", default=[], metavar="NAME", help="a pinned project (timm; may be repeated)")
    add("--rounds", type=int, default=3, metavar="N", help="how often each is run; medians count (3)")
    add("--select", metavar="RULES", help="devlint's own --select")
    add("--max-ratio", type=float, default=1.0, metavar="R", help="fail above this multiple of libcst (1.0)")
    add("--cache", type=Path, default=default_cache(), metavar="DIR", help="where the wheels are kept (%(default)s)")
    add("--json", action="store_true", help="print JSON instead of a table")
    return parser.parse_args()


def _measure(folder: Path, options: argparse.Namespace) -> dict[str, Summary]:
    """The three costs over the files in ``folder``."""
    parse_all = [sys.executable, str(HERE / "parse_all.py")]
    selection = ["--select", options.select] if options.select else []
    commands = {
        AST: [*parse_all, "ast", str(folder)],
        LIBCST: [*parse_all, "libcst", str(folder)],
        DEVLINT: [*COLD_CHECK, "--exit-zero", "-j", "1", *selection, str(folder)],
    }
    return interleaved(commands, REPOSITORY, options.rounds)


def _heading(folder: Path) -> str:
    """What was read, and with what."""
    files = sorted(folder.rglob("*.py"))
    lines = sum(file.read_bytes().count(b"\n") for file in files)
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{len(files):,} files, {lines:,} lines; {python}, LibCST {version('libcst')}"


def ratio(result: dict[str, Summary]) -> float:
    """devlint's CPU time as a multiple of LibCST's."""
    return result[DEVLINT].cpu_seconds / result[LIBCST].cpu_seconds


def table(name: str, result: dict[str, Summary]) -> str:
    """The costs on one project as a Markdown table."""
    rows = [
        f"| {name} | CPU s (median) | fastest to slowest | per ast | per libcst | peak MiB |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for command, summary in result.items():
        ratios = " | ".join(f"{summary.cpu_seconds / result[other].cpu_seconds:.2f}" for other in (AST, LIBCST))
        spread = f"{summary.fastest:.2f} to {summary.slowest:.2f}"
        rows.append(
            f"| {command} | {summary.cpu_seconds:.2f} | {spread} | {ratios} | {summary.peak_bytes / 2**20:.0f} |"
        )
    return "\n".join(rows)


def as_json(results: dict[str, dict[str, Summary]]) -> str:
    """The costs for another program."""
    described = {
        name: {
            command: {
                "cpu_seconds": summary.cpu_seconds,
                "runs": [run.cpu_seconds for run in summary.runs],
                "peak_bytes": summary.peak_bytes,
            }
            for command, summary in result.items()
        }
        for name, result in results.items()
    }
    return json.dumps(described, indent=2, ensure_ascii=False)


if __name__ == "__main__":
    sys.exit(main())
