"""A progress bar on the terminal, once a run turns out to be long."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import rich.progress

_PATIENCE = 1.0
_INTERVAL = 0.1


class Progress:
    """Call it with the files done and the files in all; it shows nothing during the first second."""

    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled
        self._due = time.monotonic() + _PATIENCE
        self._bar: rich.progress.Progress | None = None
        self._task: rich.progress.TaskID | None = None

    def __call__(self, done: int, total: int) -> None:
        """Show where the run is."""
        now = time.monotonic()
        if not self._enabled or now < self._due:
            return
        self._due = now + _INTERVAL
        if self._bar is None:
            self._open(total)
        assert self._bar is not None
        assert self._task is not None
        self._bar.update(self._task, completed=done, total=total)
        self._bar.refresh()

    def _open(self, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        columns = TextColumn("checking"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
        # No thread that refreshes: workers are forked, and a fork takes no threads along.
        self._bar = Bar(*columns, console=Console(stderr=True), auto_refresh=False, transient=True)
        self._task = self._bar.add_task("check", total=total)
        self._bar.start()

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
