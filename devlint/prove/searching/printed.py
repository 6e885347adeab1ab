"""A line that lets a script print what is wrong with an object, where nothing is raised."""

from __future__ import annotations

import ast
import re

from devlint.prove.claim import Claim
from devlint.prove.searching.plan import Plan

_CONTAINER = re.compile(r"`self\.(\w+)` is a plain (\w+)")


def printed(tree: ast.Module, claim: Claim, plan: Plan) -> str:
    """The line for the object that a plan makes, empty where there is none."""
    if plan.target.kind != "construct" or not plan.target.is_module:
        return ""
    if claim.code == "DVL105" and (match := _CONTAINER.match(claim.message)):
        held = f"model.{match[1]}.values()" if match[2] == "dict" else f"model.{match[1]}"
        return f"print({{weight.device for module in {held} for weight in module.parameters()}})  # stays on cpu\n"
    name = _assigned(tree, claim) if claim.code == "DVL106" else ""
    return f'print("{name}" in dict(model.named_parameters()))  # False\n' if name else ""


def _assigned(tree: ast.Module, claim: Claim) -> str:
    """The attribute of the object that the statement of the finding assigns."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign) or not node.lineno <= claim.span[0] <= (node.end_lineno or 0):
            continue
        target = node.targets[0]
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
            return target.attr
    return ""
