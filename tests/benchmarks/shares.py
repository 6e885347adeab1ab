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

from devlint.check import workers
from devlint.check.command import COLLECTING
from devlint.check.discovery.target import Target
from devlint.check.discovery.walk import discover
from devlint.check.outcome import Outcome
from devlint.check.project.view import begin
from devlint.check.task import Task
from devlint.config.load import Resolver
from devlint.config.schema import Config
from devlint.rules.selection import validate


def main(path: str, jobs: int) -> list[float]:
    """The CPU seconds of this process, and of each that it had to check files."""
    gc.set_threshold(*COLLECTING)
    targets = discover([path], Resolver(validate, Config(root=path))).targets
    begin()
    last: dict[str, float] = {}
    for outcome in workers.run(targets, jobs, _Timed()):
        process, seconds = (outcome.error or "").split()
        last[process] = float(seconds)
    return [time.process_time(), *sorted(last.values(), reverse=True)]


class _Timed(Task):
    def run(self, target: Target) -> Outcome:
        super().run(target)
        return Outcome(target.path, error=f"{os.getpid()} {time.process_time()}")


if __name__ == "__main__":
    print(json.dumps(main(os.path.abspath(sys.argv[1]), int(sys.argv[2]))))
