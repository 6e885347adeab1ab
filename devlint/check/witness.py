"""A run as the commands ask it, which read code: they do not know where its record comes from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from devlint.finding import Finding

if TYPE_CHECKING:
    from devlint.sites.observed import Observations


class Witness(Protocol):
    """A run that is asked about files, and about what was found in them."""

    def observations(self, filename: str, data: bytes | None = None) -> Observations | None:
        """What it has seen of a file, or of its content."""
        ...

    def weigh(self, findings: Iterable[Finding], contents: Mapping[str, bytes]) -> list[Finding]:
        """The findings with what it says of each; ``contents`` are those of files that are not read from the disk."""
        ...
