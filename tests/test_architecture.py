"""The layers hold: who may import whom, how large a room may be, and where names of libraries may stand."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import devlint

PACKAGE = Path(devlint.__file__).parent
MOST_MODULES = 15
_PACKAGES = (
    r"(?:torch|torchvision|torchaudio|torchmetrics|numpy|scipy|sklearn|pandas|matplotlib|accelerate|transformers"
    r"|diffusers|lightning|pytorch_lightning|ray|tensordict|timm|einops|kornia|ignite|deepspeed|tqdm)"
)
LIBRARY = re.compile(rf"{_PACKAGES}\.[\w.]+")
"""A qualified name of a library, as code would have to spell it to decide something by it."""
LIBRARY_PATTERN = re.compile(rf"\b{_PACKAGES}\\\.[\w(]")
"""The same in a regular expression."""
ASKING = frozenset({"startswith", "endswith", "get", "compile", "match", "search", "fullmatch"})
"""Methods, and functions of `re`, by which code decides what a name is."""


def test_imports_keep_to_the_layers() -> None:
    """The contracts stand in pyproject.toml; imports for the sake of types count."""
    call = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    done = subprocess.run(
        [sys.executable, "-c", call, "--no-cache"], cwd=PACKAGE.parent, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    assert " 0 broken" in done.stdout


def test_no_room_is_crowded() -> None:
    modules = Counter(path.parent for path in PACKAGE.rglob("*.py") if path.name != "__init__.py")
    assert not {str(folder): number for folder, number in modules.items() if number > MOST_MODULES}


def test_names_of_libraries_stand_in_the_catalog_and_in_models() -> None:
    """Elsewhere the interpreter knows what something does, and not what it is called."""
    found = [
        f"{path.relative_to(PACKAGE).as_posix()}: {text}"
        for path in (PACKAGE / "flow").rglob("*.py")
        if path.relative_to(PACKAGE).parts[1] not in ("catalog", "models")
        for text in _strings(*_expressions(path))
        if LIBRARY.fullmatch(text) or LIBRARY_PATTERN.search(text)
    ]
    assert not found


def test_rules_decide_by_no_name_of_a_library() -> None:
    """What a rule compares, looks up or searches for stands in the catalog; what it writes or advises, it may spell."""
    found = [
        f"{path.relative_to(PACKAGE).as_posix()}: {text}"
        for path in (PACKAGE / "rules").rglob("*.py")
        for text in _strings(*_deciding(ast.parse(path.read_text(encoding="utf-8"))))
        if LIBRARY.fullmatch(text) or LIBRARY_PATTERN.search(text)
    ]
    assert not found


def test_what_knows_no_library_names_none() -> None:
    """The audit, the simulator and proofs run torch, and `torch_api` is a table of its names; all others have flow."""
    apart = {"flow", "rules", "auditor", "simulator", "prove", "torch_api"}
    found = [
        f"{path.relative_to(PACKAGE).as_posix()}: {text}"
        for path in PACKAGE.rglob("*.py")
        if path.relative_to(PACKAGE).parts[0] not in apart
        for text in _strings(*_expressions(path))
        if LIBRARY.fullmatch(text)
    ]
    assert not found


def _expressions(path: Path) -> list[ast.expr]:
    """What a module is made of, without the strings that document it."""
    nodes = [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    documenting = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    return [node for node in nodes if isinstance(node, ast.Constant) and id(node) not in documenting]


def _deciding(tree: ast.Module) -> Iterator[ast.expr]:
    """What is compared, asked for at the begin or end of a string, or stands in a table or a constant of the module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            yield from (node.left, *node.comparators)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ASKING:
            yield from node.args
    for statement in tree.body:
        value = statement.value if isinstance(statement, (ast.Assign, ast.AnnAssign)) else None
        if isinstance(value, ast.Dict):
            yield from filter(None, value.keys)
        elif isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "frozenset":
            yield from value.args
        elif isinstance(value, (ast.Constant, ast.Set, ast.Tuple, ast.List)):
            yield value


def _strings(*nodes: ast.expr) -> set[str]:
    inner = (part for node in nodes for part in ast.walk(node))
    return {part.value for part in inner if isinstance(part, ast.Constant) and isinstance(part.value, str)}
