"""DVL609: a name of torch.cuda where torch has one for every accelerator."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from devlint import torch_api
from devlint.flow.catalog.accelerator_api import CUDA_ASKED, EVENT, STREAMS
from devlint.flow.catalog.concepts import SEED
from devlint.rules.base import Applicability, Edit, Report, Reports, Rule, Span
from devlint.rules.code.blocks import beside, earlier, function_at, given, removal, statement_of, way_to
from devlint.rules.code.control_flow import conditions
from devlint.rules.code.edits import fix_of, put_before
from devlint.rules.code.imports import importing
from devlint.sites.devices import Mention
from devlint.source.syntax import walk
from devlint.source.tree import Source
from devlint.torch_api.rows import Api, Kind

_SILENT = frozenset({"import", "comparison"})

# What only CUDA has, or what is named after it: a condition that this hangs on must go on asking for CUDA.
_BOUND_TO_CUDA = r"(?i)cuda|cudnn|nccl|nvtx|nvml|nvidia|triton|tensorrt|gpu|bf16|tf32"
_OTHERS = r"(?i)(?<![a-z])(?:xpu|mps|npu|mlu|musa|hpu|sdaa|neuron|xla|tpu|mtia)(?![a-z])"
"""Accelerators of other kinds: code that names one tells them apart by itself, and has a branch for CUDA."""
# Where a file needs CUDA's own class of streams or events: one of torch's is no instance of it, nor equal to one.
_STREAMS = re.compile(
    r"cuda\.(?:streams\.)?(?:Stream|ExternalStream)\b(?!\()|cuda\.(?:stream|default_stream)\(|\.cuda_stream\b"
)
_EVENTS = re.compile(r"cuda\.(?:streams\.)?Event\b(?!\()|\.cuda_event\b|ipc_handle")
_CLASSES = {**dict.fromkeys(STREAMS, _STREAMS), EVENT: _EVENTS}
SEEDS = ("manual_seed", "random.manual_seed", "cuda.manual_seed", "cuda.manual_seed_all")
_ASKS = frozenset({"is_available", "device_count"})
"""What a condition may call and be left out: questions that change nothing."""
_GUARD = "if torch.accelerator.is_available():"


class CudaOnlyApi(Rule):
    """A name of `torch.cuda` is used where torch has one that serves every accelerator.

    ## What it does
    Reports every use of a function or class of `torch.cuda` that has an equivalent for any accelerator in the torch
    that the code is for (`target-torch`, or the newest): `torch.cuda.synchronize()` is
    `torch.accelerator.synchronize()`, `torch.cuda.mem_get_info()` is `torch.accelerator.get_memory_info()`,
    `torch.cuda.Event()` is `torch.Event()`,
    `with torch.cuda.device(0):` is `with torch.accelerator.device_index(0):`, `torch.cuda.manual_seed_all(0)` is
    `torch.manual_seed(0)`. What has no equivalent, such as `torch.cuda.get_device_name()`, is let be.

    The rule is off. A project that is to run on more than CUDA switches it on, and for the lines of a change only
    where there is much of the old: with `--extend-select DVL609 --since origin/main`.

    ## Why it matters
    Code that speaks to `torch.cuda` leaves XPU, MPS and every other accelerator unused, function by function.

    ## Example
    ```python
    def wait():
        torch.cuda.synchronize()
    ```

    ## Use instead
    ```python
    def wait():
        torch.accelerator.synchronize()
    ```

    ## When it stays silent
    - There is no equivalent, or none in the oldest torch that the code is for.
    - Imports (their uses are reported), type tests, and code for the sake of another version of torch.

    ## Fix safety
    Where `target-torch` says that the new name is there, safe for `synchronize`, `current_device` and `set_device`,
    which need a device on either side; unsafe for the rest:
    `torch.Event` and `torch.Stream` are other classes, which stay CUDA's where the file goes on to ask for those;
    `torch.manual_seed` seeds the CPU, too, and is left out where the same seed is set already. `empty_cache()` and the
    functions that ask for memory do nothing without CUDA but raise without an accelerator: they are rewritten only
    where one is available, or get the question for it. `is_available()` and `device_count()` are rewritten last, where
    nothing around them is bound to CUDA any more, so that no `"cuda"` is left to hang on any accelerator. Nothing is
    rewritten in a function that names other accelerators, which has its branch for CUDA, in such a branch
    (`if device.type == "cuda":`), or with arguments that the other name would not understand.

    ## References
    - [torch.accelerator](https://docs.pytorch.org/docs/stable/accelerator.html)
    - [torch.Event](https://docs.pytorch.org/docs/stable/generated/torch.Event.html)
    - [torch.Stream](https://docs.pytorch.org/docs/stable/generated/torch.Stream.html)
    """

    code = "DVL609"
    fixes = (Applicability.UNSAFE,)
    default = False

    def judge(self, site: Mention) -> Reports:
        """A report for every use of a name that has an equivalent."""
        if site.shim or site.use in _SILENT:
            return
        for row in torch_api.portable_forms(site.path):
            if not row.replacement or not row.offered(self.target_torch):
                continue
            yield Report(
                f"`{site.path}` serves CUDA only: `{row.replacement}` serves every accelerator",
                label="CUDA only",
                help=_help(site, row),
                fix=fix_of(
                    f"Use `{row.replacement}`",
                    _rewritten(self.source, site, row),
                    safe=row.safe and self.can_count_on(row.since),
                ),
            )


def _help(site: Mention, row: Api) -> str:
    since = "" if row.since < (2, 0) else f" (torch {row.since[0]}.{row.since[1]})"
    text = f"use `{row.replacement}`{since}"
    if row.note:
        return f"{text}: {row.note}"
    if row.needs and not (row.raises or site.scope.guarded or site.scope.required):
        return f"{text}, after `torch.accelerator.is_available()`: it raises where there is none"
    return text


def _rewritten(source: Source, site: Mention, row: Api) -> tuple[Edit, ...] | None:
    """The edits after which a call serves every accelerator; ``None`` where that cannot be said."""
    call = site.call
    if call is None or not isinstance(site.node, ast.expr) or row.kind not in (Kind.RENAMED, Kind.BOUND):
        return None
    # whether anything beside the question itself is bound to CUDA, in the function or, outside of any, in the file
    decides = site.path in CUDA_ASKED and re.search(_BOUND_TO_CUDA, _text_around(source, site))
    if decides or _tells_kinds_apart(source, site):
        return None
    arguments = _arguments(source, call, row)
    # by the name under which the code knows torch, or with the import that it needs
    text, tail = source.segment(site.node), site.path.removeprefix("torch")
    imports: tuple[Edit, ...] | None = ()
    if text.endswith(tail) and text.removesuffix(tail).isidentifier():
        text = text.removesuffix(tail) + row.replacement.removeprefix("torch")
    else:
        text, imports = row.replacement, importing(source, "torch", site.node)
    # a file that goes on to use CUDA's own class of what the row makes
    own = _CLASSES.get(row.replacement)
    if arguments is None or imports is None or (own is not None and any(map(own.search, source.lines))):
        return None
    if row.replacement == SEED and _is_seeded(source, call, text.removesuffix(".manual_seed")):
        return _left_out(source, call)
    rewritten = (Edit(source.span(site.node), text), *arguments, *imports)
    if not row.needs or row.raises or site.scope.guarded or site.scope.required:
        return rewritten
    guard = _guard(source, call)
    return None if guard is None else (*guard, *rewritten)


def _arguments(source: Source, call: ast.Call, row: Api) -> tuple[Edit, ...] | None:
    """The edits of the arguments: ``torch.accelerator`` takes them by position, ``torch.Event`` by keyword."""
    if any(isinstance(argument, ast.Starred) for argument in call.args) or any(k.arg is None for k in call.keywords):
        return None
    if row.index and not all(isinstance(node, ast.Constant) and isinstance(node.value, int) for node in given(call)):
        return None
    names = [str(keyword.arg) for keyword in call.keywords]
    if row.kind is Kind.BOUND:
        return _named(source, call, row) if set(names) <= set(row.parameters) else None
    if not row.parameters:
        return ()
    if [*row.parameters[: len(call.args)], *names] != [*row.parameters[: len(call.args) + len(names)]]:
        return None
    spans = ((source.span(keyword), source.span(keyword.value)) for keyword in call.keywords)
    return tuple(Edit(Span(name.row, name.column, value.row, value.column), "") for name, value in spans)


def _named(source: Source, call: ast.Call, row: Api) -> tuple[Edit, ...] | None:
    """The positional arguments with their names."""
    if len(call.args) > len(row.parameters):
        return None
    added: list[Edit] = []
    before: ast.AST = call.func
    for number, (argument, name) in enumerate(zip(call.args, row.parameters, strict=False)):
        left, right = source.span(before), source.span(argument)
        between = source.slice(Span(left.end_row, left.end_column, right.row, right.column))
        if between.strip() != ("," if number else "("):
            return None
        added.append(put_before(source, argument, f"{name}="))
        before = argument
    return tuple(added)


def _guard(source: Source, call: ast.Call) -> tuple[Edit, ...] | None:
    """The edits that put a condition before a call which is a statement of its own, in lines of its own."""
    found = statement_of(source, call)
    if not isinstance(found, ast.Expr):
        return None
    indent, after = beside(source, source.span(found))
    imports = importing(source, "torch", call)
    if indent.strip() or after.partition("#")[0].strip() or imports is None:
        return None
    step = "\t" if "\t" in indent else "    "
    return (put_before(source, found, f"{_GUARD}\n{indent}{step}"), *imports)


def _tells_kinds_apart(source: Source, site: Mention) -> bool:
    """Whether the function names accelerators of another kind, or comes here only if a device is one of CUDA."""
    if function_at(source, site.node) is not None and re.search(_OTHERS, _text_around(source, site)):
        return True
    parts = [part for test in conditions(source, site.node) for part in ast.walk(test)]
    # what asks for the kind of a device, and not for what there is
    words = (part.value for part in parts if isinstance(part, ast.Constant))
    asks = any(isinstance(part, ast.Attribute) and part.attr == "is_cuda" for part in parts)
    return asks or any(isinstance(word, str) and word.startswith("cuda") for word in words)


def _text_around(source: Source, site: Mention) -> str:
    """The lines of the function or, outside of any, of the file, without the name itself."""
    function, name = function_at(source, site.node), source.span(site.node)
    first, last = 1, len(source.lines)
    if function is not None:
        first, last = source.span(function).row, source.span(function).end_row
    before = source.slice(Span(first, 1, name.row, name.column))
    return before + source.slice(Span(name.end_row, name.end_column, last, len(source.lines[last - 1]) + 1))


def _is_seeded(source: Source, call: ast.Call, torch: str) -> bool:
    """Whether everything has the same seed already when ``call`` comes; ``torch`` is what the file calls torch."""
    names, seed = {f"{torch}.{name}" for name in SEEDS}, [*map(ast.unparse, given(call))]
    seeds = (before for before in _before(source, call) if ast.unparse(before.func) in names)
    return any([*map(ast.unparse, given(before))] == seed for before in seeds)


def _left_out(source: Source, call: ast.Call) -> tuple[Edit, ...] | None:
    """The edit that deletes the call, with the condition around it if that has nothing else to decide."""
    gone = statement_of(source, call)
    if not isinstance(gone, ast.Expr):
        return None
    for parent, _ in reversed(way_to(source, call)):
        if isinstance(parent, ast.If) and parent.body == [gone] and not parent.orelse and _only_asks(parent.test):
            gone = parent
    edit = removal(source, gone)
    return None if edit is None else (edit,)


def _before(source: Source, call: ast.Call) -> Iterator[ast.Call]:
    """The calls that are statements of their own, on the way to a place, as far back as nothing else is done."""
    for parent, child in reversed(way_to(source, call)):
        for statement in reversed(earlier(source, child)):
            if not _only_seeds(statement):
                return
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
                yield statement.value
        if isinstance(parent, (ast.For, ast.AsyncFor, ast.While)):
            # the round before may have drawn something
            return


def _only_seeds(statement: ast.stmt) -> bool:
    """Whether a statement draws no number: it calls nothing but what seeds, or asks what there is."""
    called = (ast.unparse(node.func).rpartition(".")[2] for node in walk(statement) if isinstance(node, ast.Call))
    return all("seed" in name or name in _ASKS for name in called)


def _only_asks(test: ast.expr) -> bool:
    calls = (node.func for node in walk(test) if isinstance(node, ast.Call))
    return all(isinstance(function, ast.Attribute) and function.attr in _ASKS for function in calls)
