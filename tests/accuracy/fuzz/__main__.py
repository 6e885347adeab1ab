"""Differential fuzzing: what `devlint check` claims of random programs, and what happens when they run.

    python -m tests.accuracy.fuzz [--programs 10000] [--seed 0] [-j 2]

A Hypothesis strategy (`generate.py`, `language/`) writes programs that run from top to bottom. Each is checked, and
run on the simulated accelerator; `comparing.py` says what has to agree. Prints each disagreement with a program as
small as it gets, and keeps the figures for docs/accuracy.md, unless they are of fewer programs than usual. Fails if
there was a disagreement.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import sys
from collections.abc import Iterator

from tests.accuracy.figures import Figures, Table, save
from tests.accuracy.fuzz.fuzzing import Tally, fuzz

USUAL = 10_000


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.accuracy.fuzz",
        description=(__doc__ or "").partition("\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--programs", type=int, default=USUAL, help="so many different programs")
    parser.add_argument("--seed", type=int, default=0, help="others for another seed")
    parser.add_argument("-j", "--jobs", type=int, default=1, help="processes")
    options = parser.parse_args()
    tally = Tally()
    for part in _parts(options.seed, options.jobs):
        tally.add(part)
        for text in (*part.disagreements, *part.broken):
            print(text, flush=True)
        print(
            f"{tally.programs} programs, {tally.failures} failures, {len(tally.disagreements)} disagreements",
            flush=True,
        )
        if tally.programs >= options.programs:
            break
    print(summary(tally))
    if tally.programs >= USUAL:
        save("fuzz", figures(tally, options.seed))
    return int(bool(tally.disagreements or tally.broken))


def _parts(seed: int, jobs: int) -> Iterator[Tally]:
    """What comes of one chunk after the other, without end."""
    seeds = itertools.count(seed * 1_000_000)
    if jobs == 1:
        yield from map(fuzz, seeds)
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        while True:
            yield from pool.imap_unordered(fuzz, itertools.islice(seeds, 4 * jobs))


def summary(tally: Tally) -> str:
    """What was measured and found, in a few sentences."""
    rate, size = tally.programs / tally.seconds, tally.lines / tally.programs
    idle = tally.programs - tally.failing - tally.moving - len(tally.disagreements)
    return (
        f"{tally.programs:,} different programs of {size:.0f} statements on average were checked and run on the "
        f"simulated accelerator. Disagreements: {len(tally.disagreements)}. In {tally.failing:,} programs something "
        f"goes wrong: {tally.failures:,} lines raise a device error, each mended before the program is run on, others "
        f"lose a move or a leaf in silence. `check` claimed {tally.claimed.total():,} of them. {tally.undecided:,} "
        f"lines that raise it left alone: they hang on a condition or a place that nobody can know, or on what is "
        f"documented not to be seen. {tally.moving:,} programs move things around, and nothing goes wrong, and "
        f"{idle:,} move nothing; `check` claimed nothing of either. {tally.unfinished:,} programs had more than a "
        f"dozen errors, of which only the first were compared. {tally.rejected:,} more do not run for reasons that "
        f"have nothing to do with devices, and do not count. ({rate:.0f} programs per second of one core.)"
    )


def figures(tally: Tally, seed: int) -> Figures:
    """The outcome for docs/accuracy.md."""
    claims = [(code, number) for code, number in sorted(tally.claimed.items())]
    used = [(name, number) for name, number in sorted(tally.used.items())]
    return Figures(
        title="Random programs: the linter against the run",
        command=f"python -m tests.accuracy.fuzz --seed {seed}",
        summary=summary(tally),
        tables=(
            Table("Claims, each confirmed by a run", ("Rule", "Claims"), claims),
            Table("What the programs are made of", ("Construct", "Programs"), used),
        ),
    )


if __name__ == "__main__":
    sys.exit(main())
