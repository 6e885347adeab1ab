"""A file to check, as discovery hands it on."""

from __future__ import annotations

from typing import NamedTuple

from devlint.config.schema import Config


class Target(NamedTuple):
    """One file to check: its path as the user would write it, its size, and the configuration that holds for it.

    ``given`` is the directory under which it was found, empty for a file that was named.
    """

    path: str
    size: int
    config: Config
    given: str = ""
