"""The cases of a fixture, and what the comments above them say of running them.

A case is a function or class at the top level.  Directly above it, decorators included, may stand

* `# run: EXPRESSION`: how it is called, in the namespace of the file and the vocabulary of `arguments`; several such
  lines are several runs;
* `# cannot run: REASON`; a reason `needs NAME` holds only where that library is not installed;
* `# let be: REASON`: what the rule warns of does happen here, and is let be, in a good file.

Without a comment it is called with conventional arguments, unless other code of the file uses it: then that is expected
to call it.

What a file does at its top level is a case of its own, `<top>`, whose comments stand above the file's first line of
code: `# run: python fixture.py --device cuda` is a command line.  If it cannot run, nothing of the file can.
"""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

ROOT = Path(__file__).parents[2] / "fixtures" / "rules"
TOP = "<top>"

_COMMENT = re.compile(r"#\s*(run|cannot run|let be):\s*(.*\S)")
_NEEDS = "needs "

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Case:
    """One case: ``rows`` are its first and last, ``runs`` the expressions that run it, if the file gives any."""

    name: str
    rows: tuple[int, int]
    runs: tuple[str, ...] = ()
    cannot: str = ""
    let_be: str = ""
    implied: bool = True

    @property
    def calls(self) -> tuple[str, ...]:
        """The runs it is due: expressions, or an empty string for a conventional one."""
        return self.runs or (("",) if self.implied else ())

    def __contains__(self, row: int) -> bool:
        return self.rows[0] <= row <= self.rows[1]


@dataclass(frozen=True, eq=False)
class Fixture:
    """A file, its tree and its cases, the top level first."""

    path: Path
    text: str
    tree: ast.Module
    cases: tuple[Case, ...]

    @cached_property
    def lines(self) -> list[str]:
        """Those of its text."""
        return self.text.splitlines()

    @property
    def code(self) -> str:
        """The rule it belongs to."""
        return self.path.parent.name.partition("_")[0]

    @property
    def name(self) -> str:
        """Folder and file."""
        return f"{self.path.parent.name}/{self.path.name}"

    @property
    def is_good(self) -> bool:
        """Whether its rule has nothing to say of it."""
        return self.path.name.startswith("good")

    def case_of(self, row: int) -> Case:
        """The case that a row belongs to."""
        return next((case for case in self.cases[1:] if row in case), self.cases[0])


def fixtures(codes: str = "") -> list[Path]:
    """The files of the rules whose code matches a pattern, all by default."""
    return [path for path in sorted(ROOT.glob("*/*.py")) if re.match(codes, path.parent.name)]


@lru_cache(maxsize=1024)
def read(path: Path) -> Fixture:
    """A fixture; one that does not parse has a top level that cannot run."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    try:
        tree = ast.parse(text)
    except SyntaxError:
        cannot = next((words for kind, words in _comments(lines) if kind == "cannot run"), "")
        return Fixture(path, text, ast.Module([], []), (Case(TOP, (1, len(lines)), cannot=cannot),))
    return Fixture(path, text, tree, tuple(_cases(tree, lines)))


def _cases(tree: ast.Module, lines: list[str]) -> Iterator[Case]:
    code = [node for node in tree.body if not _is_docstring(node)]
    top = lines[: _first(code[0]) - 1] if code and not isinstance(code[0], Definition) else []
    acts = any(not isinstance(node, Definition | ast.Import | ast.ImportFrom) for node in code)
    yield _case(TOP, (1, len(lines)), top, acts)
    for node in tree.body:
        if isinstance(node, Definition):
            first = _first(node)
            start = first - 1
            while start and lines[start - 1].startswith("#"):
                start -= 1
            yield _case(
                node.name, (first, node.end_lineno or first), lines[start : first - 1], not _is_used(node, tree)
            )


def _case(name: str, rows: tuple[int, int], above: list[str], implied: bool) -> Case:
    found = list(_comments(above))
    runs = tuple(words for kind, words in found if kind == "run")
    reasons = [words for kind, words in found if kind == "cannot run" and not _is_overcome(words)]
    let_be = next((words for kind, words in found if kind == "let be"), "")
    return Case(name, rows, runs, reasons[0] if reasons else "", let_be, implied)


def _is_used(definition: Definition, tree: ast.Module) -> bool:
    """Whether other code of the file names it."""
    others = [node for statement in tree.body if statement is not definition for node in ast.walk(statement)]
    return any(isinstance(node, ast.Name) and node.id == definition.name for node in others)


def _comments(lines: list[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        match = _COMMENT.fullmatch(line)
        if match:
            yield match[1], match[2]


def _is_overcome(reason: str) -> bool:
    """Whether what the case needs is there after all."""
    return reason.startswith(_NEEDS) and importlib.util.find_spec(reason.removeprefix(_NEEDS)) is not None


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _first(node: ast.stmt) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", ()))])
