"""How several processes share the work: ``python tests/benchmarks/shares.py PATH JOBS`` prints CPU seconds as JSON.

The first number is of the process that hands out the files, the others are of those that check them. On a machine
with nothing else to do, the first and the largest of the others together are the time that goes by.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time

from devlint.check import engine, workers
from devlint.check.discover import Target, discover
from devlint.check.project import begin
from devlint.check.run import COLLECTING
from devlint.config.load import Resolver
from devlint.config.schema import Config
from devlint.rules.selection import validate


def main(path: str, jobs: int) -> list[float]:
    """The CPU seconds of this process, and of each that it had to check files."""
    gc.set_threshold(*COLLECTING)
    targets = discover([path], Resolver(validate, Config(root=path))).targets
    begin()
    last: dict[str, float] = {}
    for outcome in workers.run(targets, jobs, _timed):
        process, seconds = (outcome.error or "").split()
        last[process] = float(seconds)
    return [time.process_time(), *sorted(last.values(), reverse=True)]


def _timed(target: Target) -> engine.Outcome:
    engine.check_target(target)
    return engine.Outcome(target.path, error=f"{os.getpid()} {time.process_time()}")


if __name__ == "__main__":
    print(json.dumps(main(os.path.abspath(sys.argv[1]), int(sys.argv[2]))))
