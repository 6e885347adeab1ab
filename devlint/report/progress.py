"""A progress bar on the terminal, once a run turns out to be long."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import rich.progress

_PATIENCE = 1.0
_INTERVAL = 0.1


class Progress:
    """Call it with what is done and what there is in all; it shows nothing during the first second.

    ``doing`` says what is done, ``counted`` whether its number is shown besides the bar.
    """

    def __init__(self, enabled: bool, doing: str = "checking", counted: bool = True) -> None:
        self._enabled = enabled
        self._doing = doing
        self._counted = counted
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

        number = [MofNCompleteColumn()] if self._counted else []
        columns = TextColumn(self._doing), BarColumn(), *number, TimeRemainingColumn()
        # No thread that refreshes: workers are forked, and a fork takes no threads along.
        bar = Bar(*columns, console=Console(stderr=True), auto_refresh=False, transient=True)
        bar.add_task(self._doing, total=total)
        bar.start()
        return bar

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
