"""Uses of libraries that observers hear of: names, and devices among arguments; and where CUDA was initialized."""

from __future__ import annotations

import ast

from devlint import torch_api
from devlint.device import Topic
from devlint.flow.catalog.accelerator_api import AUTOCAST, TYPES_ONLY, initializes_cuda
from devlint.flow.core import events
from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Component, Frame, Interpreter
from devlint.flow.domain.values import Value
from devlint.sites.base import Step

_OPTIONS = frozenset({"device", "map_location"})


class Initialization(Component):
    """Where the top level first used CUDA: from there on, the process keeps the GPUs that it sees."""

    def __init__(self, interpreter: Interpreter) -> None:
        self.first: Step | None = None


def initialize(frame: Frame, node: ast.AST) -> None:
    """CUDA is used."""
    if frame.state.touched is None:
        frame.state.touched = Step(node, "CUDA is used here")
    known = frame.component(Initialization)
    if frame.info is None and known.first is None and not frame.state.asked(Topic.MAIN):
        known.first = frame.state.touched


def name(frame: Frame, node: ast.expr, path: str, call: ast.Call | None = None) -> None:
    """The code speaks of a name of a library, or calls it."""
    for observer in events.heard(frame, "on_name"):
        observer.on_name(frame, node, path, call)
    if call is None or frame.interpreter.muted or not torch_api.concerns(path, call):
        return
    if initializes_cuda(path):
        initialize(frame, call)
    if not (frame.state.accelerated or frame.tried or frame.handler):
        # what comes after is reached only where this succeeds
        frame.state.required = frame.state.required or any(row.raises for row in torch_api.portable_forms(path))


def device(frame: Frame, node: ast.AST, role: str, value: Value | None = None, call: Call | None = None) -> None:
    """Tell of something that stands where a device is named."""
    for observer in events.heard(frame, "on_device"):
        observer.on_device(frame, node, role, value, call)


def devices(frame: Frame, call: Call, path: str = "", known: bool = True) -> None:
    """Tell of the devices among keyword arguments, and among options in a dict.

    What is not ``known`` may do anything with its ``device``.
    """
    if path in TYPES_ONLY:
        return
    for name in ("device", "map_location", "device_type"):
        if name in call.keyword_nodes:
            role = "autocast" if path == AUTOCAST else name if known else "argument"
            device(frame, call.keyword_nodes[name], role, call.keywords[name], call if path else None)
    for node in call.keyword_nodes.values():
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value in _OPTIONS:
                    device(frame, value, str(key.value))
