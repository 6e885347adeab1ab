"""``devlint server``: the features that an editor can ask for, over the standard streams."""

from __future__ import annotations

import logging
import os
import signal
import sys
from typing import NoReturn

import click


def run() -> int:
    """Serve until the editor says that it is enough, or is gone, and end the process with 0 or 1 then.

    It comes back only if the server cannot be started, with 2.
    """
    try:
        import pygls  # noqa: F401  # only whether it is there
    except ImportError:
        click.echo("error: devlint server needs the extra `server`: pip install 'devlint[server]'", err=True)
        return 2
    if sys.stdin is None or sys.stdout is None:
        click.echo("error: devlint server speaks to an editor on its standard streams, which are closed", err=True)
        return 2
    if sys.stdin.isatty():
        text = "devlint server waits for an editor on its standard input; docs/editor.md of devlint says more"
        click.echo(text, err=True)
    return _serve()


def _serve() -> NoReturn:
    logging.basicConfig(level=logging.CRITICAL)
    from devlint.server.app import server
    from devlint.server.protocol import Input

    serving = server()
    out = sys.stdout.buffer
    # whoever prints must not disturb the editor
    sys.stdout = sys.stderr

    def leave(code: int) -> NoReturn:
        """End at once: neither an analysis nor a client that says no more is waited for."""
        serving.stop()
        os._exit(code)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda found, _: leave(128 + found))
    serving.start_io(Input(sys.stdin.buffer), out)  # type: ignore[arg-type]  # of a stream pygls wants no more
    leave(0 if serving.finished else 1)
