"""The layers hold: who may import whom, how large a room may be, and where names of libraries may stand."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
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
    folder = PACKAGE / "flow"
    found = [
        f"{path.relative_to(folder).as_posix()}: {text}"
        for path in folder.rglob("*.py")
        if path.relative_to(folder).parts[0] not in ("catalog", "models")
        for _, text in _literals(path)
        if LIBRARY.fullmatch(text) or LIBRARY_PATTERN.search(text)
    ]
    assert not found


def _literals(path: Path) -> list[tuple[int, str]]:
    """The strings of a module, without those that document it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documenting = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documenting
    ]
