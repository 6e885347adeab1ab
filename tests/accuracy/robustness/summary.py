"""The figures of the robustness command as words and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.accuracy.figures import Table
from tests.accuracy.robustness.measure import Cost, steepness
from tests.accuracy.robustness.trial import Tally

STEEPEST = 1.5
"""Above this power of the size, time is not called linear; noise, and the caches of a processor, need some room."""
Pair = tuple[Cost, Cost]


def text(
    read: Mapping[str, Tally],
    mutated: Tally,
    large: Sequence[Pair],
    odd: Mapping[str, Sequence[Cost]],
    wrong: Sequence[str],
) -> str:
    """What was tried and what came of it, in a few sentences."""
    files = sum(tally.counts["texts"] // 2 + tally.counts["undecodable"] for tally in read.values())
    outcome = "No traceback, no hang, nothing that died" if not wrong else f"{len(wrong)} things went wrong"
    biggest = large[-1]
    steep = [name for name, costs in odd.items() if steepness(costs) > STEEPEST]
    grows = f" Time grows faster than the size with: {', '.join(steep)}." if steep else ""
    return (
        f"{outcome}: over {files:,} files of Python's own library and its tests, deliberately broken ones among them, "
        f"each read as it is and once more with its imports taken for torch; over {mutated.counts['texts']:,} fixtures "
        "with tokens dropped, doubled, swapped or replaced, under all rules, with all fixes applied, and a quarter of "
        f"them silenced, put into a baseline and shown in every format; and over {len(odd)} odd shapes of code, from "
        "4,000 findings in one statement to 4,000 subclasses of each other. "
        f"{biggest[0].lines:,} lines in one file take {biggest[0].seconds:.0f} seconds of one processor and "
        f"{biggest[0].peak_mib:,} MiB, in files of 500 lines {biggest[1].seconds:.0f} seconds and "
        f"{biggest[1].peak_mib:,} MiB. What Python's own parser gives up as too deep is reported as DVL900.{grows}"
    )


def tried(tallies: Mapping[str, Tally]) -> Table:
    """What was read, changed, silenced."""
    kinds = ("texts", "lines", "parse", "findings", "safe fixes", "all fixes", "silenced", "remembered and shown")
    rows = [[name, *(tally.counts[kind] for kind in kinds), len(tally.wrong)] for name, tally in tallies.items()]
    return Table("Texts tried, and what was done with them.", ["", *kinds, "wrong"], rows)


def sizes(large: Sequence[Pair]) -> Table:
    """How time and memory grow with realistic code."""
    rows: list[list[str | int | float]] = []
    for one, many in large:
        for where, found in (("one file", one), (f"{many.findings:,} files", many)):
            each = round(found.seconds * 1e6 / max(found.lines, 1))
            rows.append([f"{found.lines:,}", where, round(found.seconds, 1), each, found.peak_mib])
    columns = ["lines", "in", "CPU s", "microseconds a line", "peak MiB"]
    return Table("Large code: the fixtures again and again, under names of their own, all rules on.", columns, rows)


def shapes(odd: Mapping[str, Sequence[Cost]]) -> Table:
    """What the odd shapes cost."""
    rows: list[list[str | int | float]] = [
        [name, *(round(found.seconds, 2) for found in costs), round(steepness(costs), 1), costs[-1].peak_mib]
        for name, costs in odd.items()
    ]
    columns = [
        "shape",
        *(f"CPU s for {found.size:,}" for found in next(iter(odd.values()))),
        "power of the size",
        "peak MiB",
    ]
    return Table("Odd shapes: seconds of one processor.", columns, rows)
