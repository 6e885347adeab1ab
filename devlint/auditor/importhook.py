"""Calls back when the script has imported a module: it is never imported for the script, nor before it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


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

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        """The module's spec, by whoever else finds it."""
        if name != self._name or self._done:
            return None
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec: ModuleSpec | None = find(name, path, target)
            if spec is not None:
                self._watch(spec.loader)
                return spec
        return None

    def remove(self) -> None:
        """Call back no more."""
        self._done = True
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def _watch(self, loader: object) -> None:
        if not hasattr(loader, "__dict__") or not hasattr(loader, "exec_module") or "exec_module" in vars(loader):
            return

        def exec_module(module: ModuleType) -> None:
            vars(loader).pop("exec_module", None)
            loader.exec_module(module)
            if not self._done:
                self.remove()
                self._callback()

        loader.exec_module = exec_module
