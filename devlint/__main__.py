"""Where every run begins: ``python -m devlint``, and the ``devlint`` command."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command line; Ctrl-C while its modules are loaded takes one line, too."""
    if _HERE is None:
        sys.stderr.write("error: the current directory does not exist any more\n")
        sys.exit(2)
    try:
        from devlint.interrupt import dies_at_once

        with dies_at_once():
            from devlint.cli import main as command

        command(prog_name="devlint")
    except KeyboardInterrupt:
        sys.stderr.write("error: interrupted\n")
        sys.exit(130)


def _current_directory() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None


_HERE = _current_directory()

# -m puts the current directory first on the path: a click.py in the code to be checked must not be imported
if sys.path[0] != os.path.dirname(os.path.dirname(os.path.abspath(__file__))) and sys.path[0] in ("", _HERE):
    del sys.path[0]

if __name__ == "__main__":
    main()
