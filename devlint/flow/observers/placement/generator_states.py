"""States of generators that were loaded to a device with the rest of a checkpoint."""

from __future__ import annotations

import ast

from devlint.device import Device
from devlint.flow.catalog.concepts import LOAD, SETS_STATE
from devlint.flow.core.call import Call
from devlint.flow.core.events import Observer
from devlint.flow.core.interpreter import Frame, Interpreter
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.tensors import named_place
from devlint.flow.syntax import names
from devlint.sites.base import Step
from devlint.sites.placement import LoadedState


class GeneratorStates(Observer):
    """What a generator is given that takes a tensor of the CPU, and was not loaded there."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._loaded: dict[ast.AST, Device] = {}

    def on_library_call(self, frame: Frame, call: Call, path: str) -> None:
        """A file is loaded to a device, or a state is set."""
        if path == LOAD:
            value = call.argument(1, "map_location")
            place = None if value is None else named_place(value)
            if place is not None and place.known:
                self._loaded[call.node] = place
        elif path in SETS_STATE and call.nodes:
            self._set(frame, call.nodes[0], path)

    def _set(self, frame: Frame, state: ast.AST, path: str) -> None:
        """A site where every value that the name of the checkpoint gets in the function was loaded to a device."""
        part = state
        while isinstance(part, (ast.Subscript, ast.Attribute)):
            part = part.value
        if part is state or not isinstance(part, ast.Name):
            return
        stores = [
            node for node in frame.inside if isinstance(node, ast.Name) and node.id == part.id and _is_store(node)
        ]
        assigned = [node for node in frame.inside if isinstance(node, ast.Assign) and _names(node, part.id)]
        if len(assigned) != 1 or len(stores) != 1 or assigned[0].value not in self._loaded:
            return
        loaded = assigned[0].value
        place = frame.settled(self._loaded[loaded])
        if place.accelerates() is not False:
            step = Step(loaded, "loaded with `map_location` here")
            frame.emit(LoadedState(state, scope_of(frame), path, place, step))


def _is_store(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def _names(node: ast.Assign, name: str) -> bool:
    return any(names.is_name(target, name) for target in node.targets)
