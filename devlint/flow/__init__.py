"""The static wing's interpreter: reads a file as Python would run it and infers its sites."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from devlint.flow.catalog.libraries import BUILT_IN, Catalog
from devlint.flow.program.fragments import speaks_of_torch
from devlint.sites.base import Site
from devlint.source.file_kinds import is_test_file

if TYPE_CHECKING:
    from devlint.device import Device
    from devlint.flow.program.project import Project
    from devlint.sites.observed import Observations


def analyze(
    tree: ast.Module,
    text: str,
    filename: str = "",
    project: Project | None = None,
    catalog: Catalog = BUILT_IN,
    observations: Observations | None = None,
    told: set[tuple[str, Device]] | None = None,
) -> Iterator[Site]:
    """The sites of a parsed file; nothing where it does not speak of torch.

    ``filename`` serves to tell tests from other code; ``project`` knows what the file imports from others, ``catalog``
    what is stated of libraries.  ``told`` is given where the code itself says that arguments are; ``observations`` are
    what a run has seen of the file, which counts for nothing where the code was ``told`` to say otherwise before.
    """
    if not speaks_of_torch(text) and not catalog.mentioned(text):
        return
    from devlint.flow.engine.engine import Engine
    from devlint.flow.engine.foreign_files import ForeignFile
    from devlint.flow.program.observations import Observed

    engine = Engine(tree, text, is_test_file(filename, text), project, foreign=ForeignFile, catalog=catalog)
    if observations is not None:
        engine.observed = Observed(engine.index, observations, told or ())
    engine.told = None if told is None else set()
    yield from engine.run()
    if told is not None and engine.told is not None:
        told |= engine.told
    engine.dissolve()


def preload() -> None:
    """Load the interpreter before it is needed: what is loaded once, processes that are copies of this one share."""
    import devlint.flow.engine.foreign_files  # noqa: F401
