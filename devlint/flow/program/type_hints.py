"""Evidence: what a function's own text shows of its names, by annotation or by use."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator

from devlint.flow.catalog import torch_table
from devlint.flow.catalog.concepts import DEVICE, MODULE_ANNOTATIONS, TENSOR
from devlint.flow.catalog.creation import JOINING, SIZED
from devlint.flow.program.symbols import FunctionInfo
from devlint.flow.syntax import names, nodes
from devlint.flow.syntax.nodes import derived
from devlint.source.syntax import says_none, walk

TENSOR_ONLY = frozenset(
    """unsqueeze unsqueeze_ view view_as expand expand_as new_zeros new_ones new_tensor new_full new_empty
    masked_fill masked_fill_ masked_select detach is_cuda permute contiguous numel softmax log_softmax sigmoid bmm
    unbind flatten type_as is_floating_point index_select scatter_ scatter_add_ gather chunk argmax topk cumsum
    repeat_interleave unfold sqrt exp long mT nonzero bool int short byte clamp reshape transpose""".split()
)
"""Attributes which tensors have, and neither modules, arrays nor batches of other libraries all have."""
NUMBERS_TOO = frozenset(
    """add div divide float_power floor_divide mul multiply pow remainder sub subtract true_divide xlog1py xlogy zeta
    bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift""".split()
)
"""Functions of torch whose ``input`` may be a number as well; that of all others is a tensor."""
_OF_TENSORS = frozenset("device shape dtype ndim data grad T to cuda cpu item size dim numpy tolist".split())
_OF_MASKS = frozenset("bool byte double float half int long short to type_as".split())
"""Methods that a comparison has only where it is one of tensors."""
_COUNTING = frozenset({"range", "arange", "randperm"}) | SIZED - {"full", "randint"}
"""Functions that are told how many numbers to make."""
_NUMBERS = frozenset({"int", "float", "bool", "str"})
_NUMBERS_ANNOTATION = re.compile(
    r"^(?:typing\.)?(?:Optional|Union|[Tt]uple|[Ll]ist|Sequence)?\[?"
    r"(?:int|float|bool|None|\.\.\.|[Tt]uple|[Ll]ist|[\[\],| ])+$"
)
_TENSOR_ANNOTATION = re.compile(
    r"(?:^|[\s\[|.])(?:Tensor|Variable|FloatTensor|LongTensor|BoolTensor|IntTensor)(?:$|[\s\]|])"
)
_ARRAY = r"\b(?:ndarray|NDArray|ArrayLike|(?:np|numpy)\.(?:array|matrix|memmap))\b"
_DATA_ANNOTATION = re.compile(rf"{_ARRAY}|\b[Ll]ist\[(?:int|float)\]")
_TENSORS_ANNOTATION = re.compile(
    r"^(?:typing\.)?(?:[Ll]ist|[Tt]uple|Sequence|Iterable|Iterator)\[(?:torch\.)?Tensor(?:, \.\.\.)?\]$"
)
_OTHER_ANNOTATION = re.compile(rf"{_ARRAY}|List|list|Dict|dict|Tuple|tuple|Union|Sequence|Iterable|Callable")
_CONTAINER = re.compile(r"(?:[\w.]*Optional\[)?(?:\w+\.)*(?:[Ll]ist|[Dd]ict|[Tt]uple|Sequence|Iterable|Mapping)\b")
_FOREIGN_ANNOTATION = re.compile(r"(?:typing\.)?(?:Optional\[)?(?:tf|tensorflow|jnp|jax|paddle|mx)\.[\w.]+\]?")
_DEVICE_NAME = re.compile(
    r"(?:^|_)(?:device|dev|devices?_?id|gpu_id|local_rank|rank)(?:_|$|\d)|(?:^|_)device", re.IGNORECASE
)


@functools.lru_cache(maxsize=8192)
def is_device_name(name: str) -> bool:
    """Whether a name says that it holds a device, or an index of one."""
    return _DEVICE_NAME.search(name) is not None


_CHOOSING = re.compile(
    r"(?i)_*(?:\w+_)?(?:args?|cfg|conf|config|opts?|options?|h?params|flags|settings|accelerator|fabric|trainer|engine"
    r"|model|net|network|module|pipe|pipeline|agent|policy|runner|learner|encoder|decoder|generator|discriminator)\d*"
)
"""How something is called whose ``.device`` somebody has chosen."""


@functools.lru_cache(maxsize=4)
def objects(body: ast.AST) -> frozenset[str]:
    """The names in a function or file that are no tensors by what is done with them: called, or asked for more."""
    found: set[str] = set()
    for node in walk(body):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found.add(node.func.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            own = torch_table.function(f"{TENSOR}.{node.attr}") is not None
            if not (own or node.attr in TENSOR_ONLY or node.attr in _OF_TENSORS):
                found.add(node.value.id)
    return frozenset(found)


def is_chosen_by(name: str, body: ast.AST) -> bool:
    """Whether the ``.device`` of what has a name is one that somebody chose, and not where a tensor happens to be."""
    return not name.isidentifier() or _CHOOSING.fullmatch(name) is not None or name in objects(body)


def sent_later(info: FunctionInfo, name: str, row: int) -> bool:
    """Whether a name is moved to a device below a row, and not before: ``x = x.cuda()``."""
    found = [
        statement.lineno
        for statement in info.of(ast.Assign)
        if any(names.is_name(target, name) for target in statement.targets) and _is_sent(statement.value, name)
    ]
    return bool(found) and min(found) > row


def _is_sent(made: ast.expr, name: str) -> bool:
    called = names.called(made)
    given = nodes.argument(made, 0, "device") if isinstance(made, ast.Call) else None
    said = "" if given is None else names.code(given).strip("'\"")
    return called == f"{name}.cuda" or (
        called == f"{name}.to" and ("cuda" in said or is_device_name(said.rpartition(".")[2]))
    )


@derived
def hints(info: FunctionInfo) -> dict[str, str]:
    """What each name of a function shows itself to be: "tensor", "tensors", "number", "device", "module" or "host".

    The first argument of a module's ``forward`` is a tensor unless it is used as something else.
    """
    forward = info.name == "forward" and info.owner is not None and info.owner.is_module
    arguments = info.node.args
    others = {*_required_otherwise(info), *_put_together(info)}
    found = {name: "tensor" for name in (*_shown_tensors(info), *_inputs(info)) if name not in others}
    found.update(dict.fromkeys((name for name in _on_the_host(info.calls) if _is_one_thing(info, name)), "host"))
    if forward and len(arguments.args) > 1:
        first = arguments.args[1]
        text = "" if first.annotation is None else names.code(first.annotation)
        said = text if _CONTAINER.match(text) else ""
        open_ = first.arg not in found and (not said or "Tensor" in said) and not is_device_name(first.arg)
        default = defaults_of(arguments).get(first.arg)
        open_ = open_ and (default is None or says_none(default)) and _is_read(info, first.arg)
        shown = (_shows_no_tensor(node, first.arg) for node in info.nodes) if open_ else ()
        if open_ and not next((answer for answer in shown if answer is not None), False):
            # of a batch of unknown size nobody names the samples
            found[first.arg] = "tensors" if said or _is_unpacked(info, first.arg) else "tensor"
    for argument in info.parameters:
        hint = "" if argument.annotation is None else annotated(argument.annotation)
        if hint:
            found[argument.arg] = hint
    return found


def annotated(annotation: ast.expr) -> str:
    """What an annotation says, in the words of :func:`hints`."""
    return _annotated_as(names.code(annotation).strip("'\""))


@functools.lru_cache(maxsize=4096)
def _annotated_as(text: str) -> str:
    if text in _NUMBERS or _NUMBERS_ANNOTATION.search(text):
        return "number"
    if DEVICE in text or text == "device":
        return "device"
    if text in MODULE_ANNOTATIONS:
        return "module"
    data = _DATA_ANNOTATION.search(text) and "Tensor" not in text and "Any" not in text
    if data or _FOREIGN_ANNOTATION.fullmatch(text):
        return "host"
    if _TENSORS_ANNOTATION.search(text):
        return "tensors"
    if _TENSOR_ANNOTATION.search(text) and not _OTHER_ANNOTATION.search(text):
        return "tensor"
    return ""


def may_be_none(annotation: ast.expr) -> bool:
    """Whether an annotation allows ``None``."""
    return any(word in ast.unparse(annotation) for word in ("Optional", "None"))


def defaults_of(arguments: ast.arguments) -> dict[str, ast.expr]:
    """The default of each parameter that has one."""
    parameters = [*arguments.posonlyargs, *arguments.args]
    found: dict[str, ast.expr] = {}
    if arguments.defaults:
        found = {p.arg: d for p, d in zip(parameters[-len(arguments.defaults) :], arguments.defaults, strict=True)}
    found.update({p.arg: d for p, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is not None})
    return found


def is_numbers(node: ast.expr | None) -> bool:
    """Whether a default is a tuple or list of numbers."""
    items = node.elts if isinstance(node, (ast.Tuple, ast.List)) else ()
    return bool(items) and all(
        isinstance(item, ast.Constant) and isinstance(item.value, (int, float)) for item in items
    )


def _shown_tensors(info: FunctionInfo) -> Iterator[str]:
    """The names that a function shows to be tensors: by a method, by their shape, by slices in several dimensions."""
    # what can be called is no tensor's
    methods = {call.func for call in info.calls}
    for node in info.attributes:
        read = node.attr in ("shape", "is_cuda", "mT") and isinstance(node.ctx, ast.Load)
        if read and node not in methods and isinstance(node.value, ast.Name):
            yield node.value.id
    for method in (call.func for call in info.calls):
        proves = isinstance(method, ast.Attribute) and (method.attr in TENSOR_ONLY or method.attr in ("size", "dim"))
        if proves and isinstance(method, ast.Attribute) and isinstance(method.value, ast.Name):
            yield method.value.id
        if isinstance(method, ast.Attribute) and method.attr in _OF_MASKS:
            yield from _compared(method.value)
    for item in info.of(ast.Subscript):
        if isinstance(item.value, ast.Name) and isinstance(item.slice, ast.Tuple) and _is_sliced(item.slice):
            yield item.value.id


def _compared(node: ast.expr) -> Iterator[str]:
    """The name of what is compared with a number."""
    if isinstance(node, ast.Compare) and isinstance(node.left, ast.Name) and len(node.comparators) == 1:
        other = node.comparators[0]
        if isinstance(other, ast.Constant) and isinstance(other.value, (int, float)):
            yield node.left.id


def _inputs(info: FunctionInfo) -> Iterator[str]:
    """The arguments that a function of torch takes as they come, and which therefore are tensors."""
    taken = [(call, call.args[0]) for call in info.calls if call.args and isinstance(call.func, ast.Attribute)]
    given = {parameter.arg for parameter in info.parameters}
    calls = [(call, first.id) for call, first in taken if isinstance(first, ast.Name) and first.id in given]
    for call, name in calls:
        path = info.index.resolve(names.dotted(call.func))
        entry = torch_table.function(path) if path.startswith("torch.") else None
        if entry is not None and entry.parameters[:1] == ("input",) and path.rpartition(".")[2] not in NUMBERS_TOO:
            given.discard(name)
            if not any(_becomes_another(node, name, call) for node in info.nodes):
                yield name


def _becomes_another(node: ast.AST, name: str, call: ast.Call) -> bool:
    """Whether a name is bound anew before a call, or tested for what it is."""
    if isinstance(node, ast.Name):
        return node.id == name and not isinstance(node.ctx, ast.Load) and node.lineno <= call.lineno
    tested = isinstance(node, ast.Call) and bool(node.args) and names.is_name(node.args[0], name)
    return tested and names.called(node).rpartition(".")[2] in ("isinstance", "is_tensor")


def _required_otherwise(info: FunctionInfo) -> Iterator[str]:
    """The names that have to be of another class than a tensor's for the function to go on."""
    tests = {
        call: call.args[0].id
        for call in info.calls
        if isinstance(call.func, ast.Name) and call.func.id == "isinstance" and len(call.args) == 2
        if isinstance(call.args[0], ast.Name) and "Tensor" not in names.code(call.args[1])
    }
    for node in info.nodes if tests else ():
        required: ast.expr | None = node.test if isinstance(node, ast.Assert) else None
        if isinstance(node, ast.If) and not node.orelse and isinstance(node.body[-1], (ast.Return, ast.Raise)):
            inner, holds = nodes.denied(node.test)
            required = None if holds else inner
        if isinstance(required, ast.Call) and required in tests:
            yield tests[required]


def _put_together(info: FunctionInfo) -> Iterator[str]:
    """The names of several tensors, which stand for one from where the function has put these together."""
    joins = {id(call): call.args[0] for call in info.calls if names.dotted(call.func) in JOINING and call.args}
    if not joins:
        return
    first: dict[str, ast.Assign] = {}
    for statement in info.of(ast.Assign) if joins else ():
        for name in names.inside(*statement.targets):
            if statement.lineno <= first.get(name, statement).lineno:
                first[name] = statement
    for name, statement in first.items():
        # under a condition, it may also come as one
        if statement in info.node.body and any(
            names.is_name(joins[id(part)], name) for part in walk(statement.value) if id(part) in joins
        ):
            yield name


def _is_sliced(parts: ast.Tuple) -> bool:
    return any(
        isinstance(part, ast.Slice) or (isinstance(part, ast.Constant) and part.value is ...) for part in parts.elts
    )


def _on_the_host(calls: list[ast.Call]) -> Iterator[str]:
    """The names that go into NumPy as they are, which no tensor on an accelerator can."""
    for node in calls:
        if not isinstance(node.func, ast.Attribute):
            continue
        if node.func.attr == "numpy" and isinstance(node.func.value, ast.Name) and not node.keywords:
            yield node.func.value.id
        elif names.dotted(node.func).startswith(("np.", "numpy.")):
            yield from (argument.id for argument in node.args if isinstance(argument, ast.Name))


def _is_one_thing(info: FunctionInfo, name: str) -> bool:
    """Whether a name is a parameter, or assigned once at most: in another branch it may stand for another thing."""
    if any(parameter.arg == name for parameter in info.parameters):
        return True
    found = (node for node in info.nodes if names.is_name(node, name))
    return sum(isinstance(getattr(node, "ctx", None), ast.Store) for node in found) <= 1


def _is_read(info: FunctionInfo, name: str) -> bool:
    """Whether a function reads a name at all: of one that it ignores it shows nothing."""
    return any(names.is_name(node, name) and isinstance(getattr(node, "ctx", None), ast.Load) for node in info.nodes)


def _shows_no_tensor(node: ast.AST, name: str) -> bool | None:
    """Whether a node shows that a name is no tensor: a container, a word, a number; ``None`` where it shows nothing."""
    if isinstance(node, ast.Compare):
        return True if names.is_name(node.left, name) and _is_words(node.comparators[0]) else None
    if isinstance(node, ast.Attribute):
        strange = torch_table.method(node.attr) is None and node.attr not in ("shape", "device", "dtype")
        return True if strange and names.is_name(node.value, name) else None
    if isinstance(node, ast.Subscript):
        by_key = isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)
        return True if by_key and names.is_name(node.value, name) else None
    if isinstance(node, ast.comprehension):
        return True if names.is_name(node.iter, name) else None
    if isinstance(node, ast.Call) and _is_count_for(node, name):
        return True
    if isinstance(node, ast.Call) and names.is_name(node.func, "isinstance") and len(node.args) == 2:
        tested = node.args[0]
        if isinstance(tested, ast.Subscript) and names.is_name(tested.value, name):
            return True
        return not _TENSOR_ANNOTATION.search(ast.unparse(node.args[1])) if names.is_name(tested, name) else None
    return None


def _is_count_for(call: ast.Call, name: str) -> bool:
    """Whether a name says how many of something there are to be: in ``range(n)``, ``torch.arange(n)``."""
    function = names.called(call).rpartition(".")[2]
    ends = [word.value for word in call.keywords if word.arg in ("end", "size")]
    return function in _COUNTING and any(names.is_name(given, name) for given in (*call.args, *ends))


def _is_words(node: ast.expr) -> bool:
    """Whether something can only be compared with a string: it is one, or several."""
    items = node.elts if isinstance(node, (ast.Tuple, ast.List, ast.Set)) else [node]
    return bool(items) and all(isinstance(item, ast.Constant) and isinstance(item.value, str) for item in items)


def _is_unpacked(info: FunctionInfo, name: str) -> bool:
    statements = (node for node in info.of(ast.Assign) if isinstance(node.targets[0], (ast.Tuple, ast.List)))
    return any(names.is_name(node.value, name) for node in statements)
