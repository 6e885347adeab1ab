"""Calls of torch's interface that rules ask about as a whole: loading, and giving memory back."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devlint.flow.catalog.concepts import LOAD, LOADERS
from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.registry import MODELS
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.values import UNKNOWN, Value
from devlint.flow.program import def_use
from devlint.flow.program.symbols import ClassInfo, Index
from devlint.flow.syntax import names
from devlint.flow.transfer import api_use
from devlint.sites.devices import ApiCall

_FLUSHES = (*(f"torch.{backend}.empty_cache" for backend in ("cuda", "xpu", "mps", "accelerator")), "gc.collect")


def _load(frame: Frame, call: Call, path: str) -> Value:
    if path == LOAD and "map_location" not in call.keywords and len(call.nodes) > 1:
        api_use.device(frame, call.nodes[1], "map_location")
    return _told(frame, call, path, call.open or call.starred, _purpose(frame, call))


def _flush(frame: Frame, call: Call, path: str) -> Value:
    """A call that gives memory back."""
    return _told(frame, call, path, call.open)


def _told(frame: Frame, call: Call, path: str, more: bool, purpose: str = "") -> Value:
    """A site; ``more`` says that the call may give more than its text shows."""
    frame.emit(ApiCall(call.node, scope_of(frame), path, dict(call.keyword_nodes), len(call.positional), more, purpose))
    return UNKNOWN


def _purpose(frame: Frame, call: Call) -> str:
    """What a loaded object is for: known where it goes into ``load_state_dict``, or where a data set reads it."""
    owner = frame.owner
    if owner is not None and owner.is_dataset:
        return "dataset"
    foreign = dict(_foreign(frame))
    if def_use.restores(frame.code, call.node, foreign):
        return "state dict"
    numbers = {name for name, info in foreign.items() if not info.index.mentions("torch")}
    if def_use.restores(frame.code, call.node, foreign.keys() - numbers):
        return "state of numbers"
    return ""


def _foreign(frame: Frame) -> Iterator[tuple[str, ClassInfo]]:
    """The names, and the classes, of what has a ``load_state_dict`` of its own."""
    if frame.owner is not None and _restores_itself(frame.owner):
        yield "self", frame.owner
    index = frame.interpreter.index
    for parameter in frame.info.parameters if frame.info is not None else ():
        text = "" if parameter.annotation is None else names.code(parameter.annotation).strip("'\"")
        known = _own_class(index, text)
        if known is not None:
            yield parameter.arg, known
    for made in frame.info.nodes if frame.info is not None else ():
        known = _own_class(index, names.called(made.value)) if isinstance(made, ast.Assign) else None
        if known is not None and isinstance(made, ast.Assign):
            yield from ((target.id, known) for target in made.targets if isinstance(target, ast.Name))


def _own_class(index: Index, text: str) -> ClassInfo | None:
    """The class that a name stands for, if it restores its state itself."""
    path = index.resolve(text) if names.is_class(text) else ""
    known = (index.classes.get(path) or index.outside(text, path)) if path else None
    return known if known is not None and not known.is_open and _restores_itself(known) else None


def _restores_itself(info: ClassInfo) -> bool:
    """Whether a class has a ``load_state_dict`` of its own: a module's may keep what it is given, too."""
    return "load_state_dict" in info.methods


MODELS.register({**dict.fromkeys(LOADERS, _load), **dict.fromkeys(_FLUSHES, _flush)})
