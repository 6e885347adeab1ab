"""Python's limit of recursion, which compiled code does not know: it would overrun its stack, and die."""

from __future__ import annotations

import ast

GUARDED = {
    "devlint/flow/evaluation/expressions.py": ("evaluate",),
    "devlint/flow/evaluation/statements.py": ("run_body",),
}
"""The functions through which the interpreter comes to what is inside of an expression or a statement."""
_FEW = 1000
_DEPTH = """
class Depth_:
    def __init__(self) -> None:
        self.now = 0
DEPTH_: Final = Depth_()
"""


def guard(tree: ast.Module, names: tuple[str, ...]) -> None:
    """Let functions of a module count how deep they are, and raise RecursionError where Python would."""
    body: list[ast.stmt] = []
    for item in tree.body:
        body.append(item)
        if isinstance(item, ast.FunctionDef) and item.name in names:
            parameters = ", ".join(argument.arg for argument in item.args.args)
            outer = ast.parse(
                f"""
def {item.name}({ast.unparse(item.args)}) -> {ast.unparse(item.returns or ast.Name("object", ast.Load()))}:
    if DEPTH_.now >= {_FEW} and DEPTH_.now >= sys.getrecursionlimit():
        raise RecursionError("maximum recursion depth exceeded")
    DEPTH_.now += 1
    try:
        return {item.name}_unguarded_({parameters})
    finally:
        DEPTH_.now -= 1
"""
            ).body
            item.name = f"{item.name}_unguarded_"
            body += outer
    tree.body = body
    missing = [
        name for name in names if not any(isinstance(item, ast.FunctionDef) and item.name == name for item in body)
    ]
    if missing:
        raise ValueError(f"no function {missing[0]} is there to guard")
    imports = [item for item in body if isinstance(item, (ast.Import, ast.ImportFrom))]
    at = body.index(imports[-1]) + 1
    body[at:at] = ast.parse(f"import sys\n{_DEPTH}").body
