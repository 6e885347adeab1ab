"""Several processes for much code: each takes one file at a time, so that a crash names its file and costs no other."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess

from devlint.check.discovery.target import Target
from devlint.check.outcome import Outcome
from devlint.check.task import Task


def run(targets: Sequence[Target], jobs: int, task: Task) -> Iterator[Outcome]:
    """Do the task in several processes, the big files first, and yield what comes of each as it is done."""
    queue = sorted(targets, key=lambda target: target.size)
    # A fork shares the rules and tables that are loaded already. It is safe here: no thread of devlint is alive.
    forks = os.name == "posix" and "fork" in multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("fork" if forks else "spawn")
    if context.get_start_method() == "fork":
        _load()
    workers: list[_Worker] = []
    try:
        for _ in range(min(jobs, len(queue))):
            workers.append(_Worker.start(context, workers, task))
        for worker in workers:
            worker.give(queue)
        while busy := {worker.connection: worker for worker in workers if worker.target is not None}:
            for connection in wait(list(busy)):
                worker = busy[connection]  # type: ignore[index]  # one of the pipes that were waited for
                outcome = worker.take()
                if outcome is None:
                    outcome = worker.crashed()
                    workers.remove(worker)
                    worker.connection.close()
                    worker = _Worker.start(context, workers, task)
                    workers.append(worker)
                yield outcome
                worker.give(queue)
    finally:
        # Also the way out of Ctrl-C and of a reader that went away: nobody waits for a file half done.
        for worker in workers:
            worker.process.kill()
            worker.process.join()
            worker.connection.close()


def _load() -> None:
    """Load once what every worker needs, before it is a copy of this process.

    LibCST is not among it: loading it takes longer than all of this, and few files have anything to fix.
    """
    from devlint.flow import preload
    from devlint.rules.registry import registry

    preload()
    registry()
    # What is there now will stay: no worker needs to look for garbage in it, and it remains shared.
    gc.freeze()


@dataclass(slots=True, eq=False)
class _Worker:
    """A process, the line to it, and the file it is at."""

    process: BaseProcess
    connection: Connection
    target: Target | None = None

    @classmethod
    def start(cls, context: BaseContext, others: Sequence[_Worker], task: Task) -> _Worker:
        ours, theirs = context.Pipe()
        # A fork takes our ends of all lines along. While a child holds one open, it never sees that we are gone.
        taken = [ours, *(other.connection for other in others)] if context.get_start_method() == "fork" else []
        process = context.Process(target=_serve, args=(theirs, taken, task), daemon=True)  # type: ignore[attr-defined]  # every context has Process
        with _no_interrupt():
            process.start()
        # The child's end must be open in the child alone, or its death would not be noticed.
        theirs.close()
        return cls(process, ours)

    def give(self, queue: list[Target]) -> None:
        """Hand over the biggest file that is left."""
        self.target = queue.pop() if queue else None
        if self.target is not None:
            try:
                self.connection.send(self.target)
            except OSError:
                # It died in between; the wait for its answer will notice.
                pass

    def take(self) -> Outcome | None:
        """The answer of a worker that has one, None if it died over the file."""
        try:
            outcome = self.connection.recv()
        except (EOFError, OSError):
            return None
        return outcome if isinstance(outcome, Outcome) else None

    def crashed(self) -> Outcome:
        """What to say of the file that a worker died over."""
        self.process.join()
        code = self.process.exitcode or 0
        try:
            how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        except ValueError:
            how = f"signal {-code}"
        path = self.target.path if self.target else "?"
        return Outcome(path, error=f"the process that checked this file died ({how}), please report it")


def _serve(connection: Connection, taken: Sequence[Connection], task: Task) -> None:
    """A worker's life: files come in, outcomes go out, until the line is closed."""
    for other in taken:
        other.close()
    # Ctrl-C reaches the whole process group; the parent decides what happens then.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    while True:
        try:
            target = connection.recv()
            connection.send(task.run(target))
        except (EOFError, OSError):  # who asked is gone
            return


@contextmanager
def _no_interrupt() -> Iterator[None]:
    """Hold Ctrl-C back while a process begins, or it would reach one that does not ignore it yet."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
