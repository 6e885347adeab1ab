"""The documentation of rules as files, which an editor can open without a network."""

from __future__ import annotations

import os
import shutil
import tempfile

from pygls.uris import from_fs_path

from devlint.rules.registry import registry


class RulePages:
    """A directory of pages, written when they are asked for; it is gone when the server is."""

    def __init__(self) -> None:
        self._directory = ""
        self._known: dict[str, str] = {}

    def address(self, code: str) -> str:
        """The address of a rule's page, empty if there is none or it cannot be written."""
        if code not in self._known:
            self._known[code] = self._written(code)
        return self._known[code]

    def remove(self) -> None:
        """Remove what was written."""
        if self._directory:
            shutil.rmtree(self._directory, ignore_errors=True)

    def _written(self, code: str) -> str:
        rule = registry().get(code)
        if rule is None:
            return ""
        try:
            self._directory = self._directory or tempfile.mkdtemp(prefix="devlint-rules-")
            path = os.path.join(self._directory, f"{code}-{rule.name}.md")
            with open(path, "w", encoding="utf-8") as stream:
                stream.write(f"# {code}: {rule.name}\n\n{rule.documentation()}\n")
        except OSError:
            return ""
        return from_fs_path(path) or ""
