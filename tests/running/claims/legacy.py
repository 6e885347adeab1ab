"""What the rules of the family `legacy` claim: torch warns of a name or an argument, or has no CUDA for a type."""

from __future__ import annotations

import ast
from collections.abc import Iterable

import torch

from devlint.finding import Finding, Severity
from tests.running.claims import Claim, Unobservable, itself
from tests.running.claims.portability import needs_cuda, wants_cuda
from tests.running.instrument import statement
from tests.running.observed import Run

WARNINGS = ("FutureWarning", "DeprecationWarning", "UserWarning")
WORDS = (
    "deprecated",
    "is going to be removed",
    "will be removed",
    "renamed",
    "no longer",
    "has no effect",
    "is ignored",
)


def _warnings(run: Run) -> list[tuple[int, str]]:
    old = [text.startswith(WARNINGS[:2]) or any(word in text for word in WORDS) for _, text in run.warned]
    return [warning for warning, is_old in zip(run.warned, old, strict=True) if is_old]


def _warned(finding: Finding, run: Run) -> str | None:
    """Torch warns there; if the row is that of a definition, a decorator's."""
    around = statement(run.fixture.tree, run.fixture.lines, finding.span) or run.node(finding)
    rows = range(around.lineno, (around.end_lineno or around.lineno) + 1)
    if isinstance(run.node(finding), ast.Name | ast.Attribute):
        rows = range(run.case.rows[0], run.case.rows[1] + 1)  # it is used later
    there = any(row in rows for row, _ in _warnings(run))
    there = there or any(
        "pin_memory_device" in finding.message and "pin_memory_device" in text for _, text in run.warned
    )
    gone = run.failure is not None and run.failure.is_at(finding) and run.failure.text.startswith("AttributeError")
    if gone and "have it no more" in finding.message:
        return None
    return None if there else f"warnings: {[(row, text[:80]) for row, text in run.warned]}"


def _all_warnings(run: Run) -> Iterable[str]:
    return [f"row {row}: {text[:120]}" for row, text in _warnings(run) if row]


def _old_type(finding: Finding, run: Run) -> str | None:
    """Without CUDA a type of CUDA cannot be used; a variable is a plain tensor, detached; else torch warns."""
    if "makes a plain tensor" in finding.message:
        values = run.seen(run.node(finding))
        made = [variable(torch.ones(1, requires_grad=True) * 2) for variable in values]
        plain = made and all(type(tensor) is torch.Tensor and tensor.is_leaf for tensor in made)
        return None if plain else f"{values}"
    if "volatile" in finding.message:
        return None if any("volatile" in text for _, text in run.warned) else f"{run.warned}"
    used_later = isinstance(run.node(finding), ast.Name | ast.Attribute) and finding.span.row in run.case
    if needs_cuda(finding, run) is None or (used_later and wants_cuda(run)):
        return None
    if finding.severity is Severity.INFO and run.failure and run.failure.is_own:
        return None
    said = _warned(finding, run)
    return said and f"{said}; {run.failure and run.failure.text}"


CLAIMS: dict[str, Claim | Unobservable] = {
    "DVL701": Claim(_warned, _all_warnings),
    "DVL702": Claim(_old_type, _all_warnings, watches=itself, machine="host", raises=True),
    "DVL703": Claim(_warned, _all_warnings, raises=True),
}
