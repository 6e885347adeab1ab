"""The oldest Python that a project requires: what its metadata say of it, and where the search ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from devlint.config.python_requirement import nearest, oldest


@pytest.mark.parametrize(
    ("bounds", "release"),
    [
        (">=3.12", (3, 12)),
        (">=3.9,<4", (3, 9)),
        ("==3.12.*", (3, 12)),
        ("~=3.11", (3, 11)),
        ("^3.10", (3, 10)),
        ("^3.9 || ^3.12", (3, 9)),
        ("<3.13", None),
        ("^3.9 || *", None),
        ("*", None),
        ("", None),
    ],
)
def test_the_oldest_python_within_bounds(bounds: str, release: tuple[int, int] | None) -> None:
    assert oldest(bounds) == release


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", '[project]\nname = "a"\nrequires-python = ">=3.12"\n'),
        ("pyproject.toml", '[tool.poetry.dependencies]\npython = "^3.12"\n'),
        ("setup.cfg", "[options]\npython_requires = >=3.12\n"),
        ("setup.py", "from setuptools import setup\nsetup(name='a', python_requires='>=3.12')\n"),
    ],
)
def test_metadata_say_it_for_all_that_is_below(tree, name: str, text: str) -> None:
    root = tree({f"a/{name}": text, "a/b/c.py": "", "a/b/own/.git/x": "", "a/b/own/c.py": ""})
    assert nearest(str(root / "a" / "b"), {}) == (3, 12)
    assert nearest(str(root / "a" / "b" / "own"), {}) is None


def test_broken_metadata_say_nothing(tree) -> None:
    root = tree({".git/x": "", "pyproject.toml": "requires-python = [", "setup.cfg": "python_requires"})
    assert nearest(str(Path(root)), {}) is None
