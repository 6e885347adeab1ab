"""The files and folders of this moment, each looked at once in a run."""

from __future__ import annotations

import os

from devlint.check.project.content import Fingerprint, Stamp, examine, stamp_of
from devlint.check.project.modules import listing


class Disk:
    """What is there now, to be compared with what a result hangs on."""

    def __init__(self) -> None:
        self._stamps: dict[str, Stamp | None] = {}
        self._seen: dict[str, Fingerprint] = {}
        self._listings: dict[str, dict[str, bool]] = {}

    def kind(self, folder: str, name: str) -> bool | None:
        """Whether what has that name in a folder is a folder itself, ``None`` if nothing has."""
        known = self._listings.get(folder)
        if known is None:
            known = self._listings[folder] = listing(folder)
        return known.get(name)

    def holds(self, folder: str, name: str, digest: bytes, stamp: Stamp | None) -> Fingerprint | None:
        """What a file holds, if its content has that digest; it is read unless it still has the stamp."""
        filename = os.path.join(folder, name)
        if filename not in self._stamps:
            self._stamps[filename] = stamp_of(filename)
        if stamp is not None and self._stamps[filename] == stamp:
            return Fingerprint(digest, stamp)
        seen = self._seen.get(filename)
        if seen is None:
            seen = self._seen[filename] = examine(filename)[1]
        return seen if seen.digest == digest else None
