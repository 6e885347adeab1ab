"""``devlint server``: the features that an editor can ask for, over the standard streams."""

from __future__ import annotations

import logging
import sys

import click


def run() -> int:
    """Serve until the editor says that it is enough, or is gone: 0 or 1 then; 2 if the server cannot be started."""
    try:
        import pygls  # noqa: F401  # only whether it is there
    except ImportError:
        click.echo("error: devlint server needs the extra `server`: pip install 'devlint[server]'", err=True)
        return 2
    if sys.stdin is None or sys.stdout is None:
        click.echo("error: devlint server speaks to an editor on its standard streams, which are closed", err=True)
        return 2
    if sys.stdin.isatty():
        click.echo("devlint server waits for an editor on its standard input; see docs/editor.md", err=True)
    logging.basicConfig(level=logging.CRITICAL)
    from devlint.server.features import server

    serving = server()
    out = sys.stdout.buffer
    # whoever prints must not disturb the editor
    sys.stdout = sys.stderr
    try:
        serving.start_io(sys.stdin.buffer, out)
    except KeyboardInterrupt:
        return 130
    finally:
        serving.stop()
    return 0 if serving.finished else 1
