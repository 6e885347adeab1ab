"""Basis: what a claim rests on, which says how grave it can be.

An error or a warning is for what the function itself shows, with the functions that it calls, or a run has seen. What
follows from what the methods of an object have left in it, or from where a caller keeps an argument and somebody has
put a module, holds as long as these are what they seem to be: that is a hint.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from devlint.rules.base import Report
from devlint.rules.code.blocks import is_method, outermost_function
from devlint.sites.base import Site, Step
from devlint.source.tree import Source


def is_inferred(
    source: Source, report: Report, node: ast.AST, steps: Sequence[tuple[Step, Source]], site: Site
) -> bool:
    """Whether a report about ``node`` rests on more than its function, given the file of each step that explains it."""
    if getattr(site, "measured", None) is not None:
        return False
    here = outermost_function(source, node)
    there = ((file, outermost_function(file, step.node)) for step, file in steps)
    return report.assumed or any(function is not here and is_method(file, function) for file, function in there)
