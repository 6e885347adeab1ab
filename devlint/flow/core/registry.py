"""The registry of library models: who knows what a name of a library returns and does, by its qualified name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.domain.values import Value

Model = Callable[[Frame, Call, str], Value]
"""The result of a call of a qualified name, with all that it does in the frame."""


class Registry:
    """Models by qualified name: of an exact name first, then of the longest prefix of whole parts."""

    def __init__(self) -> None:
        self._exact: dict[str, Model] = {}
        self._below: dict[str, Model] = {}
        self._found: dict[str, Model | None] = {}

    def register(self, models: Mapping[str, Model]) -> None:
        """Add models; a name that ends with a dot stands for all names below it."""
        self._found.clear()
        for path, model in models.items():
            (self._below if path.endswith(".") else self._exact)[path] = model

    def model(self, path: str) -> Model | None:
        """Who models a qualified name, ``None`` where nobody does."""
        if path not in self._found:
            self._found[path] = self._exact.get(path) or self._nearest(path)
        return self._found[path]

    def _nearest(self, path: str) -> Model | None:
        head = path
        while head:
            head = head.rpartition(".")[0]
            found = self._below.get(f"{head}.")
            if found is not None:
                return found
        return None


MODELS = Registry()
"""The models of all libraries; the modules of :mod:`devlint.flow.models` add theirs when they are imported."""
