"""The fixes of DVL203 and DVL202: tell the creation where, and leave the moves out, or make it before the loop."""

from __future__ import annotations

import ast
from dataclasses import replace

from devlint.finding import Edit, Fix, Span
from devlint.flow.syntax.nodes import holds
from devlint.immutable import immutable
from devlint.rules.code.blocks import around, beside, function_at, method_of, receiver, stores, way_to
from devlint.rules.code.device_candidates import device_instead_of_cuda
from devlint.rules.code.edits import fix_of, with_arguments, without_call, without_last
from devlint.sites.base import Creation
from devlint.sites.transfers import Transfer
from devlint.source.syntax import walk
from devlint.source.tree import Source

_READS_THE_HOST = frozenset(
    {"tensor", "as_tensor", "asarray", "scalar_tensor", "from_numpy", "frombuffer", "from_file", "from_dlpack", "load"}
)
"""They read values of the host, which are copied whoever is told the device."""
_EXACT = frozenset("zeros ones full empty eye tril_indices triu_indices scalar_tensor".split())
"""Factories whose values are the same on every device."""
_ANY_DTYPE = frozenset({"zeros", "ones", "empty", "eye"})
"""Factories whose values are the same whether they are made in a dtype or converted to it."""
_FROM_DATA = frozenset({"tensor", "as_tensor", "asarray"})
_TAKE_DTYPE = _ANY_DTYPE | _FROM_DATA | {"arange", "linspace", "rand", "randn", "randint"}
_INEXACT = frozenset(
    """arange range linspace logspace rand randn randint randperm hann_window hamming_window blackman_window
    bartlett_window kaiser_window fftfreq rfftfreq""".split()
)
_EXACT_STEPS = frozenset(
    """view reshape flatten unsqueeze squeeze unsqueeze_ squeeze_ permute transpose t repeat tile contiguous
    clone detach long int float double half bool byte short flip roll zero_ fill_ tril triu""".split()
)
"""Methods of which the same is true, and which take no tensor."""
_SCATTERED = frozenset({"expand", "[]"})
"""Views with gaps, or with elements in one place: a copy to another device has room of its own for each element."""
_STEPS = (
    _EXACT_STEPS
    | _SCATTERED
    | frozenset("normal_ uniform_ random_ bernoulli_ neg abs exp log sin cos sqrt sum mean pow".split())
)
HANDFUL = 4
"""So many numbers are as good as one: to copy them costs no more, and nothing that could be seen."""
LEGACY = {
    "Tensor": "", "FloatTensor": "torch.float32", "DoubleTensor": "torch.float64", "HalfTensor": "torch.float16",
    "LongTensor": "torch.int64", "IntTensor": "torch.int32", "ByteTensor": "torch.uint8", "BoolTensor": "torch.bool",
}  # fmt: skip
_MADE = _EXACT | _INEXACT | _FROM_DATA
"""What makes tensors, by the last part of its name."""
_BOUNDS = frozenset({"start", "end", "step", "data"})
_LITERAL = (ast.Constant, ast.List, ast.Tuple, ast.UnaryOp, ast.USub, ast.Load)
_SLICES = (ast.Constant, ast.Slice, ast.Tuple, ast.UnaryOp, ast.USub, ast.Load)


@immutable(frozen=True, slots=True)
class _Asked:
    """What the move asks for, as the arguments of a creation."""

    device: str
    dtype: str
    certain: bool
    """Whether it is word for word what the move said."""
    alike: bool = False
    """Whether the dtype is that of another tensor, which may be complex."""


def reads_the_host(function: str) -> bool:
    """Whether a function makes a tensor of values of the host, so that a copy has to be made in any case."""
    return function.rpartition(".")[2] in _READS_THE_HOST


def made_beside(site: Transfer, made: Creation) -> bool:
    """Whether other tensors are made in what is moved: of one of them alone on the device, the rest raises."""
    calls = [node for node in walk(site.node) if isinstance(node, ast.Call) and not holds(made.node, node)]
    return any(ast.unparse(call.func).rpartition(".")[2] in _MADE for call in calls)


def creating(source: Source, site: Transfer, made: Creation) -> Fix | None:
    """The creation with ``device=``, and no move; ``None`` where something else would have to come along."""
    told, leaving = _told(source, site, made), without_call(source, site.node)
    if told is None and isinstance(site.node, ast.Call):
        told, leaving = _told(source, site, made, converted=True), _convert(source, site, site.node)
    if told is None:
        return None
    edit, device, exact = told
    return fix_of(f"Create with `device={device}`", edit, leaving, safe=exact)


def _told(
    source: Source, site: Transfer, made: Creation, last: ast.AST | None = None, converted: bool = False
) -> tuple[Edit, str, bool] | None:
    """The edit that tells a creation where a move goes, that device, and whether the values stay the same.

    ``last`` is the last of several moves to one device: up to there it has to be called the same. ``converted`` says
    that the tensor is converted afterwards, where the move was.
    """
    node = site.node
    if made.helper or made.generator or made.array or made.others or site.value.blended:
        return None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    asked = _asked(source, site, node)
    if asked is None:
        return None
    asked = replace(asked, dtype="") if converted else asked
    steps = _steps(node.func.value, made.node)
    if steps is None and _stands(source, asked, made.node, last or node):
        steps = _held(source, node.func.value, made.node)
    if steps is None or not steps <= _STEPS:
        return None
    if asked.dtype and (steps - _EXACT_STEPS - _SCATTERED or not _takes_dtype(made, steps, asked.alike)):
        return None
    edit = _created(source, made, asked)
    if edit is None:
        return None
    alike = not asked.dtype or made.function.rpartition(".")[2] in _ANY_DTYPE
    exact = asked.certain and alike and steps <= _EXACT_STEPS and _is_exact(made)
    return edit, asked.device, exact


def _asked(source: Source, site: Transfer, node: ast.Call) -> _Asked | None:
    """What is to be asked of the creation instead; ``None`` for what it cannot be asked."""
    keywords = {keyword.arg: keyword.value for keyword in node.keywords}
    if not set(keywords) <= {"device", "dtype", "non_blocking", "other"} or len(node.args) > 2:
        return None
    target = site.target_node
    if site.spelled == "cuda" or (target is None and site.spelled != "type_as"):
        # what may be None, or an index, means something else here
        at_hand = device_instead_of_cuda(source, node, site.scope)
        return _Asked(at_hand, "", False) if at_hand else None
    if target is None or not isinstance(target, ast.expr):
        return None
    text = source.segment(target)
    beside = site.spelled == "type_as" or (not site.plain and len(node.args) + len(keywords) == 1)
    if "\n" in text or (beside and not isinstance(target, (ast.Name, ast.Attribute))):
        return None
    if beside and not (len(node.args) == 1 and isinstance(target, ast.Attribute) and target.attr == "device"):
        return _Asked(f"{text}.device", f"{text}.dtype", True, alike=True)
    dtype = keywords.get("dtype") or (node.args[1] if len(node.args) > 1 else None)
    kind = source.segment(dtype) if dtype is not None else ""
    # where the function knows a device, a literal CUDA is that one by another name
    at_hand = device_instead_of_cuda(source, node, site.scope) if isinstance(target, ast.Constant) else ""
    return _Asked(at_hand or text, kind, not at_hand, alike=not kind.startswith("torch."))


def _convert(source: Source, site: Transfer, node: ast.Call) -> Edit | None:
    """The edit that leaves the conversion of a move to a device and a dtype."""
    asked, leaving = _asked(source, site, node), without_last(source, node)
    dtype = asked.dtype if asked is not None and "\n" not in asked.dtype else ""
    return Edit(leaving.span, f".to({dtype})") if leaving is not None and dtype else None


def _steps(node: ast.expr, made: ast.Call) -> frozenset[str] | None:
    """The methods through which a creation goes; ``None`` where there is more than methods and numbers on the way."""
    passed: set[str] = set()
    while node is not made:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.keywords:
            passed.add(node.func.attr)
            node = node.func.value
        elif isinstance(node, ast.BinOp) and ast.Constant in (type(node.left), type(node.right)):
            passed.add("pow")
            node = node.right if isinstance(node.left, ast.Constant) else node.left
        elif isinstance(node, ast.UnaryOp):
            passed.add("neg")
            node = node.operand
        elif isinstance(node, ast.Subscript) and all(isinstance(part, _SLICES) for part in ast.walk(node.slice)):
            if any(isinstance(part, ast.Tuple) or getattr(part, "step", None) for part in ast.walk(node.slice)):
                passed.add("[]")
            node = node.value
        else:
            return None
    return frozenset(passed)


def _held(source: Source, node: ast.expr, made: ast.Call) -> frozenset[str] | None:
    """The methods on the way from a creation to the name that is moved; ``None`` where it is not one statement."""
    if not isinstance(node, ast.Name):
        return None
    for statement, _ in reversed(way_to(source, made)):
        if isinstance(statement, ast.Assign):
            named = [target.id for target in statement.targets if isinstance(target, ast.Name)] == [node.id]
            return _steps(statement.value, made) if named else None
    return None


def _stands(source: Source, asked: _Asked, made: ast.AST, move: ast.AST) -> bool:
    """Whether the names by which the device is called mean the same at the creation as at the move."""
    wanted = {node.id for node in ast.walk(ast.parse(asked.device, mode="eval")) if isinstance(node, ast.Name)}
    rows = stores(around(source, made))
    between = range(source.span(made).row, source.span(move).row + 1)
    return not any(row in between for name in wanted & rows.keys() for row in rows[name])


def _takes_dtype(made: Creation, steps: frozenset[str], alike: bool) -> bool:
    """Whether a creation can make the dtype at once that the move converts to."""
    known = made.function.rpartition(".")[2] in (_ANY_DTYPE | _FROM_DATA if alike else _TAKE_DTYPE)
    converted = steps & frozenset("long int float double half bool byte short".split())
    return known and not converted and all(keyword.arg != "dtype" for keyword in made.node.keywords)


def _created(source: Source, made: Creation, asked: _Asked) -> Edit | None:
    """The edit that tells the creation the device."""
    name = made.function.rpartition(".")[2]
    if name in LEGACY:
        text = _typed(source, made.node, name, asked)
        return Edit(source.span(made.node), text) if text else None
    told = with_arguments(source, made.node, dtype=asked.dtype, device=asked.device)
    return told if name in _MADE else None


def _typed(source: Source, call: ast.Call, name: str, asked: _Asked) -> str:
    """A constructor by type, as the function that can be told a device; empty where that cannot be said."""
    prefix, _, _ = source.segment(call.func).rpartition(".")
    if not prefix or call.keywords or not call.args or asked.dtype:
        return ""
    given = [source.segment(argument) for argument in call.args]
    dtype = LEGACY[name].replace("torch.", f"{prefix}.")
    if len(call.args) == 1 and isinstance(call.args[0], (ast.List, ast.Tuple)):
        # torch.Tensor makes the default dtype of whatever numbers it is given
        kind = dtype or f"{prefix}.get_default_dtype()"
        return f"{prefix}.tensor({given[0]}, dtype={kind}, device={asked.device})"
    if all(isinstance(argument, ast.Constant) and isinstance(argument.value, int) for argument in call.args):
        kind = f", dtype={dtype}" if dtype else ""
        return f"{prefix}.empty({', '.join(given)}{kind}, device={asked.device})"
    return ""


def _is_exact(made: Creation) -> bool:
    """Whether the values are the same on every device, and the result is no leaf that wants a gradient."""
    name = made.function.rpartition(".")[2]
    if name in _EXACT:
        return True
    arguments = [*made.node.args, *(keyword.value for keyword in made.node.keywords if keyword.arg in _BOUNDS)]
    if name == "arange":
        return all(_is_whole(argument) for argument in arguments)
    literal = all(isinstance(node, _LITERAL) for argument in arguments for node in ast.walk(argument))
    return name in _FROM_DATA | LEGACY.keys() and literal and (name != "Tensor" or len(arguments) == 1)


def _is_whole(node: ast.expr) -> bool:
    """Whether an expression is surely a whole number: a literal, a length, or a size."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv)):
        return _is_whole(node.left) and _is_whole(node.right)
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
    if not isinstance(node, ast.Call):
        return False
    name = method_of(node) or getattr(node.func, "id", "")
    return name in ("len", "size", "numel", "int") and (name != "size" or bool(node.args))


def hoisting(source: Source, site: Transfer) -> Fix | None:
    """The tensor made on the device, and its moves left out; ``None`` where anything else reads it on the CPU."""
    node, made, moved = site.node, site.value.factory_node, receiver(site.node)
    if not isinstance(moved, ast.Name) or not isinstance(made, ast.Call) or site.measured is not None:
        return None
    body = function_at(source, node)
    if body is None or function_at(source, made) is not body:
        return None
    inside, wanted = walk(body), ast.unparse(node)
    moves = [part for part in inside if isinstance(part, ast.Call) and ast.unparse(part) == wanted]
    mentions = [part for part in inside if isinstance(part, ast.Name) and part.id == moved.id]
    stored = [name for name in mentions if not isinstance(name.ctx, ast.Load)]
    if len(stored) != 1 or {*mentions} != {*stored, *map(receiver, moves)}:
        return None
    told = _told(source, site, Creation(made, site.value.factory), max(moves, key=source.span))
    if told is None:
        return None
    edit, device, _ = told
    return fix_of(f"Create it with `device={device}`", edit, *(without_call(source, move) for move in moves))


def created_before(source: Source, site: Transfer) -> Fix | None:
    """The creation of what is moved at once, told the device and put in front of the loop."""
    made = site.creation
    told = None if made is None or receiver(site.node) is not made.node else _told(source, site, made)
    return None if told is None else out_of_the_loop(source, site.scope.loop, site.node, told[0].content)


def out_of_the_loop(source: Source, loop: ast.AST | None, call: ast.AST, instead: str = "") -> Fix | None:
    """The statement that gives a name to ``call``, which stands in a loop by itself, put in front of the loop."""
    if not isinstance(loop, (ast.For, ast.While)) or len(loop.body) < 2:
        return None
    statement = next((inner for inner in loop.body if isinstance(inner, ast.Assign) and inner.value is call), None)
    if statement is None:
        return None
    whole, start, value = source.span(statement), source.span(loop), source.span(call)
    line, (indent, _), (before, after) = source.lines[whole.row - 1], beside(source, start), beside(source, whole)
    if whole.row != whole.end_row or before.strip() or after.partition("#")[0].strip() or indent.strip():
        return None
    text = line[whole.column - 1 : value.column - 1] + (instead or source.segment(call)) + line[value.end_column - 1 :]
    moved = Edit(Span(start.row, 1, start.row, 1), f"{indent}{text.rstrip()}\n")
    gone = Edit(Span(whole.row, 1, whole.row + 1, 1), "")
    return fix_of("Move it in front of the loop", moved, gone)
