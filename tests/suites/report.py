"""The figures of all suites as Markdown."""

from __future__ import annotations

import json
from pathlib import Path

from .comparing import OURS, UNEXPLAINED, Comparison
from .running import Run
from .table import HERE, SUITES, Suite

FIGURES = HERE / "figures.json"
RESULTS = HERE.parents[1] / "docs" / "simulator.md"
BEGIN, END = "<!-- suites: begin -->", "<!-- suites: end -->"
_HEAD = """\
| suite | version | CPU: passed, failed | simulated | on the device | fail on both | differ | pass | time |
|---|---|---|---|---|---|---|---|---|"""


def figures(suite: Suite, version: str, comparison: Comparison) -> dict[str, object]:
    """What is kept of a comparison, to make the table of all suites of."""
    runs = {"cpu": comparison.cpu, "simulated": comparison.simulated}
    reasons = {}
    for one in comparison.differences:
        text, kind = (one.reason.text, one.reason.kind) if one.reason else (UNEXPLAINED, "unexplained")
        entry = reasons.setdefault(text, {"kind": kind, "tests": 0, "example": one.test})
        entry["tests"] += 1
    return {
        "version": version,
        **{name: {"passed": run.count("passed"), "failed": _failed(run)} for name, run in runs.items()},
        "on the device": sum(one.device for one in comparison.simulated.outcomes.values()),
        "fail on both": comparison.fail_alike,
        "both": comparison.both,
        "seconds": [round(run.seconds, 1) for run in runs.values()],
        "cut off": [name for name, run in runs.items() if run.cut_off],
        "differences": reasons,
        "share": comparison.share,
    }


def _failed(run: Run) -> int:
    return run.count("failed") + run.count("crashed")


def stored(path: Path = FIGURES) -> dict[str, dict]:
    """The figures of earlier runs, by suite."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def store(found: dict[str, dict], path: Path = FIGURES) -> None:
    """Keep the figures, in the order of the suites."""
    ordered = {suite.name: found[suite.name] for suite in SUITES if suite.name in found}
    path.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")


def row(name: str, kept: dict) -> str:
    """A suite's line in the table."""
    cpu, simulated = (f"{kept[place]['passed']}, {kept[place]['failed']}" for place in ("cpu", "simulated"))
    differ = sum(entry["tests"] for entry in kept["differences"].values())
    share = "-" if kept["share"] is None else f"{kept['share']:.2%}"
    before, after = kept["seconds"]
    cut = "".join(f", {place} cut off" for place in kept["cut off"])
    cells = (
        *(name, kept["version"], cpu, simulated, kept["on the device"], kept["fail on both"], differ, share),
        f"{before:.0f} s, {after:.0f} s{cut}",
    )
    return f"| {' | '.join(map(str, cells))} |"


def markdown(found: dict[str, dict]) -> str:
    """The table, and below it the reasons."""
    lines = [_HEAD, *(row(name, kept) for name, kept in found.items()), ""]
    lines += ["| suite | tests | kind | reason | for example |", "|---|---|---|---|---|"]
    for name, kept in found.items():
        for text, entry in sorted(kept["differences"].items(), key=lambda item: -item[1]["tests"]):
            example = entry["example"].replace("|", "\\|")
            lines.append(f"| {name} | {entry['tests']} | {entry['kind']} | {text} | `{example}` |")
    both = sum(kept["both"] for kept in found.values())
    against = sum(
        entry["tests"]
        for kept in found.values()
        for entry in kept["differences"].values()
        if entry["kind"] in (*OURS, "unexplained")
    )
    if both:
        lines += ["", f"All suites together: {both} of {both + against} pass, {both / (both + against):.2%}."]
    lines += ["", "| suite | its tests | left out |", "|---|---|---|"]
    for suite in SUITES:
        if suite.name in found:
            part = "" if suite.all_files else "; files that mention a device"
            part += f", one of {suite.every}" if suite.every > 1 else ""
            lines.append(f"| {suite.name} | {', '.join(suite.tests)}{part} | {suite.left_out} |")
    return "\n".join(lines) + "\n"


def write(found: dict[str, dict], path: Path = RESULTS) -> None:
    """Put the tables between the markers of a page; at its end, if it has none."""
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    path.write_text(f"{before}{BEGIN}\n{markdown(found)}{END}{after}", encoding="utf-8")
