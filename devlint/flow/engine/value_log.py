"""The interpreter, asked about names instead of sites."""

from __future__ import annotations

import ast
from collections.abc import Collection

from devlint.flow.catalog.libraries import Catalog
from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.domain.state import State
from devlint.flow.domain.values import Environment, Value
from devlint.flow.engine.engine import Engine
from devlint.flow.engine.foreign_files import ForeignFile
from devlint.flow.engine.queries import Watch, Watched
from devlint.flow.program.project import Project
from devlint.flow.program.symbols import FunctionInfo


def watched(
    tree: ast.Module, text: str, nodes: Collection[Watched], project: Project | None, catalog: Catalog
) -> Watch:
    """What the interpreter makes of some names of a file, each where it stands."""
    log = _Watching(tree, text, nodes, project, catalog)
    return log.look(nodes)


class _Watching(Engine):
    """A machine that keeps what it is asked to watch."""

    def __init__(
        self, tree: ast.Module, text: str, nodes: Collection[Watched], project: Project | None, catalog: Catalog
    ) -> None:
        super().__init__(tree, text, project=project, foreign=ForeignFile, catalog=catalog)
        self.seen = self.watch = Watch(nodes)

    def look(self, nodes: Collection[Watched]) -> Watch:
        """Run the file, and the functions around the nodes even if nothing in them seems to concern devices."""
        for _ in self.run():
            pass
        for node in nodes:
            around = [info for info in self.index.functions.values() if _contains(info.node, node)]
            if around and not self.seen.met(node):
                self._run_alone(max(around, key=lambda info: info.node.lineno))
        return self.seen

    def _frame(
        self, info: FunctionInfo, state: State, closure: tuple[Environment, ...], inlined: bool,
        call: Call | None = None,
        bound: Value | None = None, caller: Frame | None = None,
    ) -> Frame:  # fmt: skip
        frame = super()._frame(info, state, closure, inlined, call, bound, caller)
        for parameter in info.parameters:
            self.seen.note(frame, parameter, frame.state.env[parameter.arg])
        return frame


def _contains(function: ast.stmt, node: Watched) -> bool:
    return function.lineno <= node.lineno <= (function.end_lineno or 0)
