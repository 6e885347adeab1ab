"""A file to check, as discovery hands it on."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from devlint.config.schema import Config

if TYPE_CHECKING:
    from devlint.sites.observed import Observations


class Target(NamedTuple):
    """One file to check: its path as the user would write it, its size, and the configuration that holds for it.

    ``given`` is the directory under which it was found, empty for a file that was named.  ``observations`` are what a
    run has seen of it, if one is asked.
    """

    path: str
    size: int
    config: Config
    given: str = ""
    observations: Observations | None = None
