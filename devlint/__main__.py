"""Lets ``python -m devlint`` do what the ``devlint`` command does."""

from __future__ import annotations

from devlint.cli import main

if __name__ == "__main__":
    main(prog_name="devlint")
