"""The parts of the measurement: ``python -m tests.gpu.parts PART FILE SKIP`` does the jobs of one.

Each part has a process of its own: one that fails, dies or takes too long costs nothing of what others have found.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

Job = tuple[str, Callable[[], Any]]
"""A name, and what gives the result, which JSON can hold."""


@dataclass(frozen=True)
class Part:
    """Its jobs, the most seconds that it may take, and how many jobs are done at once."""

    jobs: Callable[[], Iterator[Job]]
    seconds: int
    at_once: int = 1


def _counts() -> Iterator[Job]:
    from tests.gpu import against_profiler, scenarios

    for group in scenarios.GROUPS:
        try:
            found = group()
        except Exception as error:
            # its tensors cannot be made: that is a result, and the other groups can do without
            yield group.__name__.strip("_"), _problem(error)
            continue
        for scenario in found:
            yield scenario.name, lambda scenario=scenario: asdict(against_profiler.compare(scenario))


def _problem(error: Exception) -> Callable[[], Any]:
    result = {"problem": f"{type(error).__name__}: {error}"}
    return lambda: result


def _training() -> Iterator[Job]:
    from tests.gpu import training

    for name in training.ALONE:
        yield name, lambda name=name: training.differences(name)


def _idioms() -> Iterator[Job]:
    from tests.gpu import idioms

    for table in idioms.TABLES:
        yield table, lambda table=table: idioms.differences(table)


def _fixtures() -> Iterator[Job]:
    from tests.gpu import fixtures

    for code in fixtures.codes():
        yield code, lambda code=code: fixtures.differences(code)


def _overhead() -> Iterator[Job]:
    from tests.gpu import overhead

    for name in overhead.MODELS:
        yield name, lambda name=name: asdict(overhead.measure(name))


def _soak() -> Iterator[Job]:
    from tests.gpu import soak

    for processes, backend in ((1, "nccl"), (2, "gloo")):
        name = f"{processes} {'process' if processes == 1 else 'processes'}, {backend}"
        yield name, lambda processes=processes, backend=backend: soak.soak(processes, backend)


PARTS = {
    "counts": Part(_counts, 120),
    "training": Part(_training, 150, at_once=4),
    "idioms": Part(_idioms, 120, at_once=3),
    "overhead": Part(_overhead, 100),
    "soak": Part(_soak, 200),
    "fixtures": Part(_fixtures, 300, at_once=8),
}
"""In the order of what is learnt by them."""


def work(part: Part, file: Path, skip: int) -> None:
    """Do the jobs of a part, and write down what each of them gives as soon as it does."""
    lock = threading.Lock()

    def note(*line: object) -> None:
        with lock, file.open("a") as lines:
            lines.write(json.dumps(line) + "\n")

    def do(job: Job) -> None:
        name, function = job
        note(name)
        try:
            result = function()
        except Exception as error:
            result = {"problem": f"{type(error).__name__}: {error}"}
        note(name, result)

    jobs = list(part.jobs())[skip:]
    if part.at_once == 1:
        for job in jobs:
            do(job)
        return
    with ThreadPoolExecutor(part.at_once) as pool:
        list(pool.map(do, jobs))


if __name__ == "__main__":
    work(PARTS[sys.argv[1]], Path(sys.argv[2]), int(sys.argv[3]))
