"""Whether a run uses a cache, and which: one for all of its files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from devlint.check.options import Options
from devlint.config.schema import Config

if TYPE_CHECKING:
    from devlint.check.cache.results import Cache


class CachePolicy:
    """What the options and the first configuration say about a cache."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._cache: Cache | None = None
        self._decided = False
        self._wanted = False

    def selectors(self, config: Config) -> set[str]:
        """Words of which an earlier run has found that they mean rules; more can be added."""
        cache = self.cache(config)
        return set() if cache is None else cache.selectors

    def cache(self, config: Config) -> Cache | None:
        """The cache of the run, chosen by the first configuration that asks; ``None`` if it does without."""
        if not self._decided:
            self._decided = True
            if self._options.only_checks and not self._options.no_cache and not config.no_cache:
                from devlint.check.cache import place
                from devlint.check.cache.results import Cache

                # A configuration that was named may lie anywhere.
                root = os.getcwd() if self._options.config is not None else config.root
                chosen = self._options.cache_dir or config.cache_dir
                self._wanted = chosen is not None
                self._cache = Cache.at(os.path.abspath(chosen or os.path.join(root, place.DIRECTORY)), root)
        return self._cache

    def save(self) -> str:
        """Write what is new; what stood in the way, if the directory was somebody's choice, in one line."""
        if self._cache is None:
            return ""
        try:
            self._cache.save()
        except OSError as error:
            return f"{self._cache.directory}: the cache cannot be written: {error.strerror}" if self._wanted else ""
        return ""
