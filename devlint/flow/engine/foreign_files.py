"""Foreign files: an engine that runs in silence what the file at hand calls there, and knows what it means."""

from __future__ import annotations

from devlint.flow.core.interpreter import Frame, Interpreter
from devlint.flow.domain.objects import Class, Function
from devlint.flow.domain.state import State
from devlint.flow.domain.values import UNKNOWN, Value
from devlint.flow.engine.engine import Engine
from devlint.flow.evaluation import statements
from devlint.flow.interprocedural.call_contexts import CallContexts
from devlint.flow.program.project import File
from devlint.flow.program.symbols import FunctionInfo
from devlint.flow.syntax.nodes import DEFINITIONS

_DEEPEST_CALL = 3
_LONGEST_ENTERED = 60
_CALLS_PER_FUNCTION = 4
_MOST_LINES = 200
"""Beyond so many lines, what binds a name at the top level is not worth a run."""


class ForeignFile(Engine):
    """Another file, of which only what is asked for is interpreted, and which says nothing itself."""

    def __init__(self, host: Interpreter, file: File) -> None:
        super().__init__(file.tree, file.text, index=file.index, host=host)
        self._file = file
        self._known: dict[str, Value | None] = {}

    def is_worth(self, info: FunctionInfo) -> bool:
        """Whether a function can say anything of where something is."""
        return self._file.index.says_something(info)

    def exceeds(self, info: FunctionInfo, depth: int) -> bool:
        """Whether a function is too long, called too often, or too deep down; other files cost more than one's own."""
        long = (info.node.end_lineno or 0) - info.node.lineno > _LONGEST_ENTERED
        return depth > _DEEPEST_CALL or long or self.component(CallContexts).exhausted(info, _CALLS_PER_FUNCTION)

    def global_value(self, name: str) -> Value | None:
        """What a name of the top level holds, found out when it is asked for."""
        if name not in self._known:
            # whoever asks again on the way goes round in a circle
            self._known[name] = UNKNOWN
            self._known[name] = self._run(name)
        return self._known[name]

    def _run(self, name: str) -> Value | None:
        function, cls = self._file.function(name), self._file.class_(name)
        if function is not None:
            return Function(function)
        if cls is not None:
            return Class(cls)
        found = self._file.outline.statements(name)
        if not found:
            return None
        lines = sum(
            (node.end_lineno or node.lineno) - node.lineno + 1 for node in found if not isinstance(node, DEFINITIONS)
        )
        if name in self.index.rebound or lines > _MOST_LINES:
            return UNKNOWN
        frame = Frame(self, State({}), inlined=True)
        statements.run_body(frame, found)
        return frame.state.env.get(name, UNKNOWN)
