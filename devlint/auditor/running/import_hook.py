"""Calls back when the script has imported a module: it is never imported for the script, nor before it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


def when_imported(name: str, callback: Callable[[], object]) -> Callable[[], None]:
    """Call back as soon as the module is there, which may be at once; the result takes the request back.

    The callback runs once, within the import, when the module's own code has run.  An import that fails is none; the
    next attempt counts.  What the callback raises comes out of the import.
    """
    module = sys.modules.get(name)
    if module is not None and not getattr(module.__spec__, "_initializing", False):
        callback()
        return lambda: None
    finder = _Finder(name, callback)
    sys.meta_path.insert(0, finder)
    return finder.remove


class _Finder(MetaPathFinder):
    """Finds the module as the other finders do, and has its loader tell when it is done.

    It is the loader's own method that is replaced, in this one loader and until it is called, so that whoever looks
    at the module's loader later sees the usual one.
    """

    def __init__(self, name: str, callback: Callable[[], object]) -> None:
        self._name = name
        self._callback = callback
        self._done = False
        self._busy = threading.local()
        self._watched: dict[int, object] = {}

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        """The module's spec, by whoever else finds it."""
        # another finder may ask all others too, and this one among them
        if name != self._name or self._done or getattr(self._busy, "asked", False):
            return None
        self._busy.asked = True
        try:
            spec = self._ask_others(path, target)
        finally:
            self._busy.asked = False
        if spec is not None:
            self._watch(spec.loader)
        return spec

    def remove(self) -> None:
        """Call back no more."""
        self._done = True
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def _ask_others(self, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec: ModuleSpec | None = find(self._name, path, target)
            if spec is not None:
                return spec
        return None

    def _watch(self, loader: Any) -> None:
        if not hasattr(loader, "__dict__") or not hasattr(loader, "exec_module") or id(loader) in self._watched:
            return
        before = vars(loader).get("exec_module")
        original = loader.exec_module
        self._watched[id(loader)] = loader

        def exec_module(module: ModuleType) -> None:
            if module.__name__ != self._name:  # an archive has one loader for all its modules
                original(module)
                return
            del self._watched[id(loader)]
            if before is None:
                del loader.exec_module
            else:
                loader.exec_module = before
            original(module)
            if not self._done:
                self.remove()
                self._callback()

        loader.exec_module = exec_module
