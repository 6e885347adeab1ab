"""The way to where a run died: the frames of a traceback, and the modules that were running in them."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Any

from torch import nn

from devlint.auditor.explanation.code import FunctionNode, frame_at, function_of
from devlint.auditor.frames import Frames, Spot, resolve_spot
from devlint.auditor.introspection.tensors import fields
from devlint.record import Frame

_WRAPPERS = frozenset({"DataParallel", "DistributedDataParallel", "OptimizedModule", "FullyShardedDataParallel"})


@dataclass(frozen=True, slots=True)
class Stop:
    """One frame of a traceback: the instruction in it that did not return, and whose code it is."""

    frame: FrameType
    instruction: int
    internal: bool
    project: bool
    line: int

    @property
    def this(self) -> Any:
        """What a method calls ``self``, ``None`` in a function without parameters."""
        code = self.frame.f_code
        return self.frame.f_locals.get(code.co_varnames[0]) if code.co_argcount and code.co_varnames else None

    @property
    def function(self) -> FunctionNode | None:
        """The definition that runs."""
        return function_of(self.frame.f_code)

    def place(self, node: ast.AST | None = None) -> Frame:
        """Where it is, or where a node of its function is."""
        code = self.frame.f_code
        return resolve_spot(Spot(code, self.instruction)) if node is None else frame_at(code, node)

    def holds(self, value: object) -> str:
        """The variable of the frame that is this very object, empty if none is."""
        return next((name for name, found in list(self.frame.f_locals.items()) if found is value), "")


class Trail:
    """A traceback from its outermost frame to its innermost."""

    def __init__(self, stops: list[Stop]) -> None:
        self.stops = stops
        self.modules: list[nn.Module] = []
        """Those whose methods ran, from the outermost in, without what only wraps one of them."""
        for this in (stop.this for stop in self.stops):
            ready = isinstance(this, nn.Module) and "_modules" in fields(this) and not is_wrapper(this)
            if ready and not any(this is module for module in self.modules):
                self.modules.append(this)

    @property
    def root(self) -> nn.Module | None:
        """The outermost module."""
        return self.modules[0] if self.modules else None

    @property
    def scenes(self) -> list[Stop]:
        """The frames of the project and of libraries other than torch, the innermost first."""
        return [stop for stop in reversed(self.stops) if not stop.internal]

    @property
    def project(self) -> Stop | None:
        """The innermost frame of the project."""
        return next((stop for stop in self.scenes if stop.project), None)

    @property
    def running(self) -> tuple[nn.Module, Stop] | None:
        """The innermost module whose method ran, and the frame of it that is the closest to what failed."""
        for stop in reversed(self.stops):
            if any(stop.this is module for module in self.modules):
                return stop.this, stop
        return None

    def find(self, kind: type) -> tuple[Any, Stop] | None:
        """The innermost object of a class whose method ran."""
        return next(((stop.this, stop) for stop in reversed(self.stops) if isinstance(stop.this, kind)), None)


def follow(traceback: TracebackType | None, frames: Frames) -> Trail:
    """The trail of a traceback."""
    stops: list[Stop] = []
    while traceback is not None:
        frame = traceback.tb_frame
        project = frames.is_project(frame.f_code)
        internal = not project and frames.is_internal(frame.f_code)
        stops.append(Stop(frame, traceback.tb_lasti, internal, project, traceback.tb_lineno))
        traceback = traceback.tb_next
    return Trail(stops)


def is_wrapper(module: nn.Module) -> bool:
    """Whether it only passes on to the module in it."""
    cls = type(module)
    return cls.__name__ in _WRAPPERS and cls.__module__.startswith("torch.")
