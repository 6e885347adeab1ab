"""What rules share: reading and rewriting an expression, the device to name instead, what a function's name says."""

from __future__ import annotations

import ast
import os.path
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from devlint.rules.blocks import function_at, statement_of
from devlint.sites import is_of_tests

if TYPE_CHECKING:
    import libcst as cst

    from devlint.rules.base import SourceText
    from devlint.sites import Scope

_LONG = 40
# A rank or an index is an accelerator's number, and of which kind the code does not say.
_DEVICE = re.compile(r"(?:.*[._])?dev(?:ice)?\d*", re.IGNORECASE)
# The methods by which torch itself moves things, and helpers that carry the destination in their name.
_MOVER = re.compile(
    r"_*(?:cuda|cpu|to|to_empty|_apply|type|half|float|double|bfloat16|xpu|hpu|npu|mps|ipu|(?:\w*_)?(?:to|2)_?(?:cuda|gpu)|\w+2(?:cuda|gpu))"
)

# A name with the word in it, as in `CUDAAccelerator`, `cuda_timer` and `NcclBackend`.
_ABOUT_CUDA = re.compile(r"(?:^|_)(?:cuda|nccl)(?:_|\d|$)|CUDA|NCCL|Cuda(?![a-z])|Nccl(?![a-z])")


def parsed(source: SourceText, node: ast.AST) -> cst.BaseExpression | None:
    """The LibCST node of an expression; ``None`` where LibCST cannot read it."""
    return source.cst(node)


def code(expression: cst.BaseExpression) -> str:
    """The text of an expression, with its comments and spacing."""
    import libcst as cst

    return cst.Module([]).code_for_node(expression)


def with_keyword(call: cst.Call, keyword: str, value: str) -> cst.Call:
    """The call with one more keyword argument, laid out like the arguments that it has."""
    import libcst as cst

    added = cst.Arg(
        cst.parse_expression(value),
        cst.Name(keyword),
        cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace("")),
    )
    if not call.args:
        return call.with_changes(args=[added])
    *others, last = call.args
    if not isinstance(last.comma, cst.Comma):
        added = added.with_changes(whitespace_after_arg=last.whitespace_after_arg)
        last = last.with_changes(comma=_comma(call), whitespace_after_arg=cst.SimpleWhitespace(""))
    else:
        # a comma after the last argument belongs to the layout of the closing bracket, and moves on with it
        added = added.with_changes(comma=last.comma)
        last = last.with_changes(comma=_comma(call))
    return call.with_changes(args=[*others, last, added])


def with_first(call: cst.Call, value: str) -> cst.Call:
    """The call with one more positional argument in front of the others, laid out like them."""
    import libcst as cst

    comma = _comma(call) if call.args else cst.MaybeSentinel.DEFAULT
    return call.with_changes(args=[cst.Arg(cst.parse_expression(value), comma=comma), *call.args])


def without_keyword(call: cst.Call, keyword: str) -> cst.Call:
    """The call without a keyword argument, laid out like before."""
    import libcst as cst

    kept = [argument for argument in call.args if argument.keyword is None or argument.keyword.value != keyword]
    if kept and call.args[-1] not in kept:
        # the new last argument ends as the old one did
        last = call.args[-1]
        kept[-1] = kept[-1].with_changes(comma=last.comma, whitespace_after_arg=last.whitespace_after_arg)
        if not isinstance(last.comma, cst.Comma):
            kept[-1] = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    return call.with_changes(args=kept)


def _comma(call: cst.Call) -> cst.Comma:
    """A comma followed by what stands between the arguments of this call: a space, or a new line."""
    import libcst as cst

    before = call.whitespace_before_args
    if len(call.args) > 1 and isinstance(comma := call.args[-2].comma, cst.Comma):
        before = comma.whitespace_after
    if isinstance(before, cst.ParenthesizedWhitespace):
        return cst.Comma(whitespace_after=before.with_changes(first_line=cst.TrailingWhitespace(), empty_lines=[]))
    return cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))


def device_at_hand(scope: Scope, *receivers: str) -> str:
    """The best device expression of the scope that does not hang on one of ``receivers``, empty where there is none."""
    for text in filter(_DEVICE.fullmatch, scope.devices):
        if not any(text == name or text.startswith((f"{name}.", f"{name}[")) for name in receivers if name):
            return text
    return ""


def device_instead_of_cuda(source: SourceText, node: ast.AST, scope: Scope) -> str:
    """The device at hand to say in the place of CUDA: not that of something which the function itself moves there."""
    calls = _calls_in(around(source, node))
    call = calls.get(node)
    device = device_at_hand(scope, *_sources(None if call is None else _moved(call)))
    owner = device.removesuffix(".device")
    return "" if owner != device and any(_to_cuda(known, owner) for known in calls.values()) else device


@lru_cache(maxsize=4)
def _calls_in(scope: ast.AST) -> dict[ast.AST, ast.Call]:
    """The calls in a function or file: each by itself, and by what it is given."""
    calls: dict[ast.AST, ast.Call] = {}
    for call in ast.walk(scope):
        if isinstance(call, ast.Call):
            for part in (call, *_given(call)):
                calls.setdefault(part, call)
    return calls


def _given(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _moved(call: ast.Call) -> ast.expr | None:
    """What a call of `.to` or `.cuda` moves."""
    return call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr in ("to", "cuda") else None


def _sources(moved: ast.expr | None) -> Iterator[str]:
    """What is moved, and the tensors that it is a part or a view of: in ``mask.t()[None].cuda()`` that is ``mask``."""
    part: ast.expr | None = moved
    for _ in range(_LONGEST_CHAIN):
        if part is None or (part is not moved and isinstance(part, ast.Name) and part.id == "self"):
            return
        if isinstance(part, ast.Call):
            part = part.func.value if isinstance(part.func, ast.Attribute) else None
            continue
        yield ast.unparse(part)
        part = part.value if isinstance(part, ast.Subscript) else None


_LONGEST_CHAIN = 20


def _to_cuda(call: ast.Call, owner: str) -> bool:
    given = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else None
    method = "to" if isinstance(given, str) and given.startswith("cuda") else "cuda"
    return ast.unparse(call.func) == f"{owner}.{method}"


def moves_to_cuda_by_name(function: str) -> bool:
    """Whether a function is an implementation of ``.cuda()`` and its kin: the device is then its caller's choice."""
    return _MOVER.fullmatch(function) is not None


def is_about_cuda(source: SourceText, scope: Scope) -> bool:
    """Whether code is for CUDA by the name of its function, its class or its file: who uses it has chosen."""
    words = (scope.function, scope.owner, os.path.basename(source.filename).partition(".")[0])
    return moves_to_cuda_by_name(scope.function) or any(_ABOUT_CUDA.search(word) for word in words)


def in_test(source: SourceText, scope: Scope) -> bool:
    """Whether the code belongs to a test: by its function, class or file, or by the folder of the file."""
    return scope.test or is_of_tests(source.filename)


def short(text: str, otherwise: str) -> str:
    """``text``, or ``otherwise`` where it is too long, or too tangled, for a message."""
    return text if text and len(text) <= _LONG and "\n" not in text and "`" not in text else otherwise


def receiver(text: str) -> str:
    """The text of an expression as what a method is called on: in brackets, if it needs them."""
    try:
        expression = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return text  # cut short, or unknown
    return ast.unparse(ast.Attribute(expression, "_", ast.Load())).removesuffix("._").rstrip()


def bracketed(source: SourceText, node: ast.AST, text: str) -> str:
    """``text`` as it may take the place of an expression: in brackets, unless that is all of a statement's value."""
    return text if statement_of(source, node) is not None else f"({text})"


def around(source: SourceText, node: ast.AST) -> ast.AST:
    """The innermost function around an expression, or the whole file."""
    return function_at(source, node) or source.tree


def stands_alone(source: SourceText, node: ast.AST) -> bool:
    """Whether an expression is a statement of its own, without brackets, so that an assignment may take its place."""
    found = statement_of(source, node)
    # a statement begins and ends with its brackets, an expression within them
    return found is not None and isinstance(found[0], ast.Expr) and source.span(found[0]) == source.span(node)
