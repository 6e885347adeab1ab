"""Lets ``python -m devlint`` do what the ``devlint`` command does."""

from __future__ import annotations

import os
import sys

# -m puts the current directory first on the path: a click.py in the code to be checked must not be imported
if sys.path[0] != os.path.dirname(os.path.dirname(os.path.abspath(__file__))) and sys.path[0] in ("", os.getcwd()):
    del sys.path[0]

from devlint.cli import main  # after the path is clean

if __name__ == "__main__":
    main(prog_name="devlint")
