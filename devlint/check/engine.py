"""A run over files: those that are found are checked, or worked on otherwise, in as many processes as pay."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from devlint.check.discovery.target import Target
from devlint.check.discovery.walk import discover
from devlint.check.outcome import Outcome, Result
from devlint.check.project import models
from devlint.config.load import Resolver
from devlint.config.schema import Config
from devlint.rules.selection import validate

if TYPE_CHECKING:
    from devlint.check.cache.results import Cache
    from devlint.check.task import Task

# What reads and judges a file is imported where that is done: of files that have not changed nothing needs to be.

BYTES_WORTH_A_PROCESS = 200_000
"""Below this much code for each process, starting one costs more than it saves.

Measured on parts of timm, seconds for one process and for two: 200 kB 0.35 and 0.37, 400 kB 0.51 and 0.40, 800 kB 0.96
and 0.68; compiled, 0.23 and 0.23, 0.34 and 0.30, 0.63 and 0.45.
"""

Progress = Callable[[int, int], None]
"""Is told the files done and the files in all."""


def check_paths(
    paths: Iterable[str | os.PathLike[str]],
    config: Config | Resolver | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
    task: Task | None = None,
) -> Result:
    """Check files and directories. Without a Config, each file's is found as the command finds it.

    ``jobs`` is the number of processes, 0 for as many as pay; ``progress`` is told the files done and the files in all.
    Another ``task`` than to check them may write the files; the findings are what remains.
    """
    resolver = config if isinstance(config, Resolver) else Resolver(validate, config)
    discovery = discover([os.fspath(path) for path in paths], resolver)
    result = check_targets(discovery.targets, jobs, progress, task)
    result.errors[:0] = discovery.errors
    return result


def check_targets(
    targets: Sequence[Target],
    jobs: int = 1,
    progress: Progress | None = None,
    task: Task | None = None,
    cache: Cache | None = None,
) -> Result:
    """Check files that were found already; a task does something else with each of them, and may write it.

    What the ``cache`` knows is not checked again; for a task it must be None.
    """
    if task is not None:
        # what is another's file under another name is written once
        targets = [*{os.path.realpath(target.path): target for target in reversed(targets)}.values()][::-1]
    models.look_again()
    result = Result()
    by_path = {target.path: target for target in targets}
    # what a run has seen of a file is not in the cache
    lasting = [target for target in targets if target.observations is None]
    found = [] if cache is None else [(target.path, cache.find(target)) for target in lasting]
    known = [Outcome(path, findings) for path, findings in found if findings is not None]
    settled = {outcome.path for outcome in known}
    left = [target for target in targets if target.path not in settled]
    for config in {id(target.config): target.config for target in left}.values():
        # what is wrong with a file of rows is better known before the work
        models.catalog(config)
    for done, outcome in enumerate(chain(known, _outcomes(left, jobs, task, cache is not None)), 1):
        target = by_path[outcome.path]
        result.add(outcome, target.config)
        if cache is not None and outcome.dependencies is not None and target.observations is None:
            cache.keep(target, outcome.findings, outcome.dependencies)
        if progress:
            progress(done, len(targets))
    result.sort()
    return result


def processes(targets: Sequence[Target], jobs: int) -> int:
    """How many processes to use: ``jobs`` at most, 0 meaning as many as there are processors, fewer for little code.

    Unless it is told a number, a hook of pre-commit has one: others may be running beside it.
    """
    limit = jobs or (1 if os.environ.get("PRE_COMMIT") else _processors())
    size = sum(target.size for target in targets)
    return max(1, min(limit, len(targets), size // BYTES_WORTH_A_PROCESS))


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _outcomes(targets: Sequence[Target], jobs: int, task: Task | None, remembered: bool) -> Iterable[Outcome]:
    if not targets:
        return ()
    from devlint.check.project.view import begin
    from devlint.check.task import Task

    begin()
    task = task or Task(remembered=remembered)
    count = processes(targets, jobs)
    if count == 1:
        return map(task.run, targets)
    from devlint.check import workers

    return workers.run(targets, count, task)
