"""What rules share: edits and fixes, rewriting an expression, quoting it, what a function's name says of its device."""

from __future__ import annotations

import ast
import io
import os.path
import re
import tokenize
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from devlint.finding import Applicability, Edit, Fix, Span
from devlint.flow.syntax.names import abbreviated
from devlint.rules.code.blocks import beside, idle_statement, receiver, removal, statement_of
from devlint.rules.code.lazy import cst
from devlint.sites.base import Scope
from devlint.source.file_kinds import is_of_tests, makes_samples
from devlint.source.tree import Source

_LONG, _LONGEST = 40, 60
# The methods by which torch itself moves things, and helpers that carry the destination in their name.
_MOVER = (
    r"_*(?:cuda|cpu|to|to_empty|_apply|type|half|float|double|bfloat16|xpu|hpu|npu|mps|ipu"
    r"|(?:\w*_)?(?:to|2)_?(?:cuda|gpu)|\w+2(?:cuda|gpu))"
)

# A name with the word in it, as in `CUDAAccelerator`, `cuda_timer` and `NcclBackend`.
_MEASURING = r"(?i)bench|warm_?up|profil|timeit|timing|latency|throughput|synchroni[sz]e"
"""Names of functions that measure, and so create, copy and wait on purpose."""
_ABOUT_CUDA = r"(?:^|_)(?:cuda|nccl)(?:_|\d|$)|CUDA|NCCL|Cuda(?![a-z])|Nccl(?![a-z])"


def fix_of(message: str, *parts: Edit | Iterable[Edit] | None, safe: bool = False) -> Fix | None:
    """A fix of all these edits; ``None`` where one of them cannot be made."""
    edits: list[Edit] = []
    for part in parts:
        if part is None:
            return None
        edits += (part,) if isinstance(part, Edit) else part
    return Fix(message, tuple(edits), Applicability.SAFE if safe else Applicability.UNSAFE)


def put_before(source: Source, node: ast.AST, text: str) -> Edit:
    """The edit that puts a text in front of a node."""
    span = source.span(node)
    return Edit(Span(span.row, span.column, span.row, span.column), text)


def put_after(source: Source, node: ast.AST, text: str) -> Edit:
    """The edit that puts a text right behind a node."""
    span = source.span(node)
    return Edit(Span(span.end_row, span.end_column, span.end_row, span.end_column), text)


def without_call(source: Source, call: ast.AST) -> Edit | None:
    """The edit that takes a call out: its statement, where that would do nothing without, or what follows its receiver.

    ``None`` where the call is no method's, where a comment would be lost, or the statement is all of its block.
    """
    found = idle_statement(source, call)
    return without_last(source, call) if found is None else removal(source, found)


def without_last(source: Source, call: ast.AST) -> Edit | None:
    """The edit that leaves ``x`` of ``x.method(...)``; ``None`` where a comment would be lost."""
    left = receiver(call)
    if left is None:
        return None
    whole, inner = source.span(call), source.span(left)
    text = source.slice(Span(inner.end_row, inner.end_column, whole.end_row, whole.end_column))
    if "#" in text:
        return None
    # brackets around the receiver belong to it, a line's continuation does not
    closing = text[: text.find(".")].rstrip(" \t\f\n\\")
    row, column = inner.end_row + closing.count("\n"), len(closing.rpartition("\n")[2])
    column += 1 if "\n" in closing else inner.end_column
    return Edit(Span(row, column, whole.end_row, whole.end_column), "")


def rewritten(source: Source, node: ast.AST, change: Callable[[cst.Call], cst.BaseExpression | None]) -> Edit | None:
    """The edit that changes a call, with its layout and its comments; ``None`` where it is none, or stays."""
    call = source.cst(node)
    changed = change(call) if isinstance(call, cst.Call) else None
    return None if changed is None else Edit(source.span(node), code(changed))


def code(expression: cst.BaseExpression) -> str:
    """The text of an expression, with its comments and spacing."""
    return cst.Module([]).code_for_node(expression)


def named(argument: cst.Arg, keyword: str) -> cst.Arg:
    """The argument, given by its name."""
    equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    return argument.with_changes(keyword=cst.Name(keyword), equal=equal)


def with_arguments(source: Source, node: ast.AST, **values: str) -> Edit | None:
    """The edit that gives a call more keyword arguments, but for those that are empty."""

    def change(call: cst.Call) -> cst.Call:
        for keyword, value in values.items():
            call = with_keyword(call, keyword, value) if value else call
        return call

    return rewritten(source, node, change)


def with_keyword(call: cst.Call, keyword: str, value: str) -> cst.Call:
    """The call with one more keyword argument, laid out like the arguments that it has."""
    added = named(cst.Arg(cst.parse_expression(value)), keyword)
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
    comma = _comma(call) if call.args else cst.MaybeSentinel.DEFAULT
    return call.with_changes(args=[cst.Arg(cst.parse_expression(value), comma=comma), *call.args])


def without_argument(source: Source, node: ast.AST, keyword: str) -> Edit | None:
    """The edit that takes a keyword argument out of a call."""
    return rewritten(source, node, lambda call: without_keyword(call, keyword))


def without_keyword(call: cst.Call, keyword: str) -> cst.Call:
    """The call without a keyword argument, laid out like before."""
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
    before = call.whitespace_before_args
    if len(call.args) > 1 and isinstance(comma := call.args[-2].comma, cst.Comma):
        before = comma.whitespace_after
    if isinstance(before, cst.ParenthesizedWhitespace):
        return cst.Comma(whitespace_after=before.with_changes(first_line=cst.TrailingWhitespace(), empty_lines=[]))
    return cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))


def as_written(source: Source, text: str) -> str:
    """An expression with the quotes that the file has around its words: ``batch["x"].device``."""
    other = text.replace("'", '"')
    if '"' in text or other == text or any(text in line for line in source.lines):
        return text
    return other if any(other.rpartition(".")[0] in line for line in source.lines) else text


def moves_to_cuda_by_name(function: str) -> bool:
    """Whether a function is an implementation of ``.cuda()`` and its kin: the device is then its caller's choice."""
    return re.fullmatch(_MOVER, function) is not None


def is_about_cuda(source: Source, scope: Scope) -> bool:
    """Whether code is for CUDA by the name of its function, its class or its file: who uses it has chosen."""
    words = (scope.function, scope.owner, os.path.basename(source.filename).partition(".")[0])
    return moves_to_cuda_by_name(scope.function) or any(re.search(_ABOUT_CUDA, word) for word in words)


def measures(scope: Scope) -> bool:
    """Whether a function measures, by its name."""
    return re.search(_MEASURING, scope.function) is not None


def in_test(source: Source, scope: Scope) -> bool:
    """Whether the code belongs to a test: by its function, class or file, or by the folder of the file."""
    return scope.test or is_of_tests(source.filename)


def on_samples(source: Source, scope: Scope) -> bool:
    """Whether code works on samples, as nothing with parameters does: whoever keeps them has them on the host yet."""
    return (scope.stateless or not scope.module) and makes_samples(source.filename)


def short(text: str, otherwise: str) -> str:
    """``text``, without its arguments where it is too long for a message; ``otherwise`` where it is too tangled."""
    if fits(text):
        return text
    try:
        brief = abbreviated(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError):
        return otherwise
    return brief if fits(brief) else otherwise


def fits(text: str) -> bool:
    """Whether a text is short and plain enough for a message."""
    return 0 < len(text) <= _LONG and "\n" not in text and "`" not in text


def quoted(text: str, otherwise: str) -> str:
    """``text`` in backticks, or ``otherwise`` where it is too tangled for a message."""
    return f"`{found}`" if (found := short(text, "")) else otherwise


def shown(text: str) -> str:
    """``text`` in backticks, on one line, and cut where it is too long."""
    line = " ".join(text.split())
    return f"`{line}`" if len(line) <= _LONGEST else f"`{line[: _LONGEST - 3].rstrip()}...`"


def with_path(spelled: str, path: str) -> str:
    """A name as the code spells it, with the one that is meant where it does not show."""
    return f"`{spelled}`" if spelled == path else f"`{spelled}` (`{path}`)"


def in_brackets(text: str) -> str:
    """The text of an expression as what a method is called on: in brackets, if it needs them."""
    try:
        expression = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return text  # cut short, or unknown
    return ast.unparse(ast.Attribute(expression, "_", ast.Load())).removesuffix("._").rstrip()


def bracketed(source: Source, node: ast.AST, text: str) -> str:
    """``text`` as it may take the place of an expression: in brackets, unless it is all of a value or an argument."""
    before, after = beside(source, source.span(node))
    argument = re.search(r"\w[(=]$", before) is not None and after.startswith((")", ","))
    return text if argument or statement_of(source, node) is not None else f"({text})"


def loses_comments(source: Source, edits: Sequence[Edit]) -> bool:
    """Whether edits take comments out of an expression that they do not put in again.

    The one at the end of a statement speaks of the statement, and goes with it.
    """
    old = [source.slice(edit.span) for edit in edits]
    if not any("#" in text for text in old):
        return False
    return bool(_comments(old) - _comments([f"{edit.content}\n)" for edit in edits]))


def _comments(texts: Iterable[str]) -> Counter[str]:
    """The comments in pieces of code, but for those after which there is no more code."""
    found: Counter[str] = Counter()
    for text in texts:
        waiting: list[str] = []
        try:
            # in brackets, any expression goes on over the ends of its lines
            for token in tokenize.generate_tokens(io.StringIO(f"({text}").readline):
                if token.type == tokenize.COMMENT:
                    waiting.append(token.string)
                elif token.string.strip():
                    found.update(waiting)
                    waiting = []
        except (tokenize.TokenError, SyntaxError):
            pass  # the bracket is not closed
    return found
