"""The tables of docs/speed.md, made of the figures that are kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from tests.benchmarks.kept import AST, CHANGED, COLD, COMPILED, LIBCST, WARM, Row, load

PROJECTS = ("timm", "ultralytics", "transformers", "eighth")
PROMISES = {"timm": ("at most 0.45", "at most 0.35"), "transformers": ("at most 0.35", "at most 1.0")}
"""Of a project: how much of LibCST's time a cold run takes, and how many seconds one that finds all results."""
TYPES = {"timm": "at most 0.7"}
_VARIANTS = ("{}", COMPILED)
"""How the rows of the plain devlint and of the compiled one are called."""
SHARED, TIMES_FASTER, LITTLE, STEEPEST = "at least 2.8", 40, 0.35, 1.5


def tables() -> str:
    """All that has been measured, as Markdown."""
    sections = [_project(name) for name in PROJECTS]
    return "\n\n".join(filter(None, (*sections, _small(), _curve(), _promises()))) + "\n"


def _project(part: str) -> str:
    rows = load(part)
    if not rows:
        return ""
    last = rows[-1]
    return f"### {last.corpus}: {last.files:,} files, {last.lines:,} lines\n\n{_table(rows)}"


def _small() -> str:
    rows = load("small")
    return f"### A file of two lines, from beginning to end\n\n{_table(rows)}" if rows else ""


def _table(rows: Sequence[Row]) -> str:
    head = ["| | CPU s | wall s | peak MiB | CPU, times `ast.parse` | measured |", "|---|---:|---:|---:|---:|---|"]
    return "\n".join([*head, *map(_line, rows)])


def _line(row: Row) -> str:
    cells = (
        row.tool,
        _seconds(row.cpu_seconds),
        _seconds(row.seconds),
        f"{row.peak_bytes / 2**20:,.0f}" if row.peak_bytes else "",
        _seconds(row.cpu_seconds / row.yardstick),
        f"{row.measured}, {row.release}, {row.runs} {'run' if row.runs == 1 else 'runs'}",
    )
    return f"| {' | '.join(cells)} |"


def _seconds(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _curve() -> str:
    rows = load("curve")
    if not rows:
        return ""
    head = [
        "### Time against lines",
        "",
        "Files drawn from six projects; a larger collection holds the smaller ones. *ms for 1,000 more* is what the",
        "lines cost that the collection has more than the one above it.",
        "",
        f"| lines | `ast.parse`, CPU s | `libcst.parse_module` | {' | '.join(map(_measured_of, _VARIANTS))} |",
        f"|---:|---:|---:|{'---:|---:|---:|' * len(_VARIANTS)}",
    ]
    return "\n".join([*head, *_points(rows)])


def _measured_of(variant: str) -> str:
    return f"{variant.format('devlint, cold')} | ms for 1,000 more | peak MiB"


def _points(rows: Sequence[Row]) -> Iterator[str]:
    slopes = _slopes(rows)
    for corpus in dict.fromkeys(row.corpus for row in rows):
        of = {row.tool: row for row in rows if row.corpus == corpus}
        parsed = [_seconds(of[tool].cpu_seconds) if tool in of else "" for tool in (AST, LIBCST)]
        ours = [of.get(variant.format(COLD)) for variant in _VARIANTS]
        if any(ours):
            lines = f"{next(filter(None, ours)).lines:,}"
            yield f"| {' | '.join([lines, *parsed, *(cell for row in ours for cell in _point(row, slopes))])} |"


def _point(row: Row | None, slopes: Mapping[Row, float]) -> Sequence[str]:
    if row is None:
        return "", "", ""
    slope = f"{1e6 * slopes[row]:.0f}" if row in slopes else ""
    return _seconds(row.cpu_seconds), slope, f"{row.peak_bytes / 2**20:.0f}"


Promise: TypeAlias = tuple[str, float, str]
"""What, how much it is, and how much it may be."""


def _promises() -> str:
    """What is to hold of the compiled devlint, beside what does, and what the other does."""
    plain, compiled = ({what: (value, wanted) for what, value, wanted in _of_all(variant)} for variant in _VARIANTS)
    rows = []
    for what, (_, wanted) in {**plain, **compiled}.items():
        cells = [f"{found[what][0]:.2f}" if what in found else "" for found in (compiled, plain)]
        rows.append(f"| {' | '.join([what, *cells, wanted])} |")
    head = [
        "### What is to hold",
        "",
        "What is wanted is for the [compiled](compiled.md) devlint to reach. Beside it stands the one that is not,",
        "which everybody has who did not ask for more.",
        "",
        "| | compiled | not compiled | wanted |",
        "|---|---:|---:|---|",
    ]
    return "\n".join([*head, *rows]) if rows else ""


def _of_all(variant: str) -> Iterator[Promise]:
    for part in PROJECTS:
        of = _by_tool(part)
        for what, value, wanted in _of_project(part, of, variant):
            yield f"{of[variant.format(COLD)].corpus.rpartition(' ')[0]}: {what}", value, wanted
    small = _by_tool("small").get(variant.format(COLD))
    if small is not None:
        yield "two lines: devlint, cold, wall s", small.seconds, f"at most {LITTLE}"
    slopes = [slope for row, slope in _slopes(load("curve")).items() if row.tool == variant.format(COLD)]
    if len(slopes) > 1:
        yield (
            "time for one more line: the most of the curve, times the least",
            max(slopes) / min(slopes),
            f"less than {STEEPEST}",
        )


def _slopes(rows: Sequence[Row]) -> dict[Row, float]:
    """CPU seconds for each line that a collection has more than the next smaller one."""
    found: dict[Row, float] = {}
    before: dict[str, Row] = {}
    for row in sorted(rows, key=lambda row: row.lines):
        smaller = before.get(row.tool)
        if smaller is not None:
            found[row] = (row.cpu_seconds - smaller.cpu_seconds) / (row.lines - smaller.lines)
        before[row.tool] = row
    return found


def _by_tool(part: str) -> dict[str, Row]:
    return {row.tool: row for row in load(part)}


def _of_project(part: str, of: Mapping[str, Row], variant: str) -> Iterator[Promise]:
    cold = variant.format(COLD)
    if cold not in of:
        return
    libcst, seconds = PROMISES.get(part, ("", ""))
    yield from _ratio("devlint, cold, times `libcst.parse_module`", of, (cold, LIBCST), libcst)
    yield from _ratio("devlint, cold, times pyrefly", of, (cold, "pyrefly"), TYPES.get(part, ""))
    for peer in ("torch-preflight", "TorchFix"):
        yield from _ratio(f"{peer}, times devlint, cold", of, (peer, cold), f"at least {TIMES_FASTER}")
    for tool, row in of.items():
        name, _, processes = tool.partition(", ")
        if name == variant.format("devlint") and "processor each" in processes:
            yield f"CPU s of 1 process, times wall s of {processes}", of[cold].cpu_seconds / row.seconds, SHARED
    for tool, wanted in ((WARM, seconds), (CHANGED, "")):
        if (found := of.get(variant.format(tool))) is not None:
            yield f"{tool}, wall s", found.seconds, wanted


def _ratio(what: str, of: Mapping[str, Row], tools: tuple[str, str], wanted: str) -> Iterator[Promise]:
    """How many times the CPU seconds of the second the first takes, both by the yardstick of their own runs."""
    if all(tool in of for tool in tools):
        one, other = (of[tool].cpu_seconds / of[tool].yardstick for tool in tools)
        yield what, one / other, wanted
