"""The registry: who models a name, and that rows of a project come before what devlint knows of it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from devlint.flow.catalog.libraries import Catalog, Layer
from devlint.flow.core.events import Observer
from devlint.flow.core.registry import MODELS, Registry
from devlint.flow.engine import library
from devlint.flow.engine.engine import Engine
from devlint.sites.placement import Forward
from devlint.source.files import toml

MODELS_FOLDER = Path(library.__file__).parents[1] / "models"
CLASH = "import torch\nfrom torch import nn\nlayer = nn.Linear(2, 2)\nlayer(torch.ones(3, 2, device='cuda'))\n"


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("a.b.c", "that name"),
        ("a.b.d", "below a.b"),
        ("a.b.d.e", "below a.b"),
        ("a.bc", "below a"),
        ("a.b", "below a"),
        ("x.load", "ends so"),
        ("a.load", "below a"),
        ("x.loaded", None),
        ("x", None),
    ],
)
def test_the_nearest_model_knows_a_name(name: str, model: str | None) -> None:
    registry: Registry[str] = Registry()
    registry.register({"a.": "below a", "a.b.": "below a.b", "a.b.c": "that name", ".load": "ends so"})
    assert registry.model(name) == model
    assert registry.model(name) == model, "when it is asked again"


def test_a_model_that_comes_later_counts() -> None:
    registry: Registry[str] = Registry()
    assert registry.model("a.b") is None
    assert registry.members("a") == frozenset()
    registry.register({"a.b": "one"})
    assert registry.model("a.b") == "one"
    assert registry.members("a") == {"b"}


def test_a_name_has_one_model() -> None:
    registry: Registry[str] = Registry()
    registry.register({"a.b": "one", "a.": "two"})
    for name in ("a.b", "a."):
        with pytest.raises(ValueError, match=re.escape(name)):
            registry.register({name: "another"})


def test_a_row_of_the_project_comes_before_a_model() -> None:
    assert MODELS.exact("torch.nn.Linear") is not None
    assert forwards("") == 1
    assert forwards('["torch.nn.Linear"]\nresult = "unknown"\n') == 0


def forwards(rows: str) -> int:
    """How many calls of modules clash in a script of a project that has some rows."""
    layer = Layer()
    layer.add(toml(rows.encode()))
    engine = Engine(ast.parse(CLASH), CLASH, catalog=Catalog([layer]))
    return sum(isinstance(site, Forward) for site in engine.run())


def test_all_that_registers_is_imported_with_the_engine() -> None:
    named = {module.__name__ for module in library.REGISTERING} | {kind.__module__ for kind in library.OBSERVERS}
    for file in MODELS_FOLDER.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        if ".register(" in text or re.search(r"^(KINDS\[|EFFECTS\.)", text, re.MULTILINE):
            path = "devlint.flow.models." + ".".join(file.relative_to(MODELS_FOLDER).with_suffix("").parts)
            assert path in named, f"{path} is not in engine/library.py"


def test_who_hears_of_events_observes_them() -> None:
    assert all(issubclass(kind, Observer) for kind in library.OBSERVERS)
    assert len(set(library.OBSERVERS)) == len(library.OBSERVERS)
