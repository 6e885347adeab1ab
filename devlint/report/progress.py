"""A progress bar on the terminal, once a run turns out to be long."""

from __future__ import annotations

import time
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

    def __call__(self, done: int, total: int) -> None:
        """Show where the run is."""
        now = time.monotonic()
        if not self._enabled or now < self._due:
            return
        self._due = now + _INTERVAL
        self._bar = self._bar or self._opened(total)
        self._bar.update(self._bar.task_ids[0], completed=done)
        self._bar.refresh()

    def _opened(self, total: int) -> rich.progress.Progress:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        columns = TextColumn("checking"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
        # No thread that refreshes: workers are forked, and a fork takes no threads along.
        bar = Bar(*columns, console=Console(stderr=True), auto_refresh=False, transient=True)
        bar.add_task("check", total=total)
        bar.start()
        return bar

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
