"""Try to break devlint: ``python -m tests.accuracy.robustness``; the figures are kept for docs/accuracy.md.

Three things are tried. All of Python's own library with its tests, twice: as it is, and with its imports taken for
torch, so that all of it is interpreted. Fixtures with a few of their tokens dropped, doubled, swapped or replaced. And
code that is very large, very deep, or of a shape nobody writes. All rules are on, all fixes are applied, and a part of
the mutants is silenced, put into a baseline and shown in each format. The exit code is 1 if anything went wrong.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path
from typing import TypeVar

from tests.accuracy.figures import Figures, save
from tests.accuracy.robustness import library, mutants, realistic, summary
from tests.accuracy.robustness.measure import Cost, cost
from tests.accuracy.robustness.shapes import SHAPES
from tests.accuracy.robustness.trial import Tally
from tests.benchmarks import measure

T = TypeVar("T")

SIZES = (1_000, 4_000)
"""How many of a thing an odd shape has."""
LINES = (10_000, 100_000, 1_000_000)
BATCH = 50
CHECK = "-m devlint check --isolated --exit-zero --select ALL --output-format concise -j 1".split()


def main() -> int:
    """0 if nothing went wrong, else 1."""
    options = _options()
    folders = {_version(folder): folder for folder in (None, *options.library)}
    read = {name: _together(library.tried, library.files(at), options.jobs) for name, at in folders.items()}
    mutated = _together(partial(mutants.tried, seed=options.seed), range(options.mutants), options.jobs)
    sizes = [size for size in LINES if size <= options.lines]
    large = [(cost(realistic.file_of, size), _project(size)) for size in sizes]
    odd = {name: [cost(make, size) for size in SIZES] for name, make in SHAPES.items()}
    wrong = [line for tally in (*read.values(), mutated) for line in tally.wrong]
    wrong += [f"{found.size} lines: {found.failure}" for pair in large for found in pair if found.failure]
    wrong += [
        f"{name}, {found.size}: {found.failure}" for name, costs in odd.items() for found in costs if found.failure
    ]
    for line in wrong:
        print(line, file=sys.stderr)
    command = f"python -m tests.accuracy.robustness --mutants {options.mutants} --seed {options.seed}"
    figures = Figures(
        "Input of any kind: nothing breaks",
        command,
        summary.text(read, mutated, large, odd, wrong),
        [summary.tried({**read, "fixtures, mutated": mutated}), summary.sizes(large), summary.shapes(odd)],
    )
    print(f"{save('robustness', figures)}: {len(wrong)} things went wrong")
    return int(bool(wrong))


def _options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser("python -m tests.accuracy.robustness", description=__doc__)
    add = parser.add_argument
    add("--mutants", type=int, default=20_000, metavar="N", help="how many mutants (%(default)s)")
    add("--seed", type=int, default=1, metavar="N", help="other mutants (%(default)s)")
    add("--lines", type=int, default=LINES[-1], metavar="N", help="of the largest code (%(default)s)")
    add("--library", type=Path, action="append", default=[], metavar="DIR", help="another Python's library, besides")
    add("-j", "--jobs", type=int, default=1, metavar="N", help="processes for all but what is measured")
    return parser.parse_args()


def _version(folder: Path | None) -> str:
    """What a library is called in the figures."""
    if folder is None:
        return f"Python {sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro}: Lib"
    found = re.search(r"\d+\.\d+(?:\.\d+)?", str(folder))
    return f"Python {found[0] if found else folder.name}: Lib"


def _together(work: Callable[[Sequence[T]], Tally], things: Sequence[T], jobs: int) -> Tally:
    """What comes of the things, in several processes."""
    result = Tally()
    with ProcessPoolExecutor(jobs) as pool:
        batches = [things[at : at + BATCH] for at in range(0, len(things), BATCH)]
        futures = [pool.submit(work, batch) for batch in batches]
        for future, batch in zip(futures, batches, strict=True):
            try:
                result.add(future.result())
            except BrokenProcessPool:
                result.wrong.append(f"a process died near {batch[0]}")
    return result


def _project(lines: int) -> Cost:
    """What a project of many files costs, from the command to its report."""
    with tempfile.TemporaryDirectory() as folder:
        count = realistic.project(Path(folder), lines)
        try:
            spent = measure.cost([sys.executable, *CHECK, folder], Path(folder))
        except measure.CommandFailedError as error:
            return Cost(lines, failure=str(error))
        return Cost(lines, lines, spent.cpu_seconds, spent.peak_bytes >> 20, count)


if __name__ == "__main__":
    sys.exit(main())
