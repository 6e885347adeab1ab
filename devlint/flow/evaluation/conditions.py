"""Conditions: which guard a branch hangs on, and what its truth says about accelerators."""

from __future__ import annotations

import ast
import functools
import operator as operators
import re
from collections.abc import Callable, Iterable
from typing import Any

from devlint import device
from devlint.device import AVAILABLE, NEVER, Kind, Truth, Wanted
from devlint.flow.catalog.accelerator_api import CUDA_TENSOR_TYPE, TENSOR_INDEX
from devlint.flow.catalog.concepts import ARRAY, AVAILABILITY, IS_AVAILABLE, IS_TENSOR, RECORDING
from devlint.flow.core import events
from devlint.flow.core.interpreter import Frame
from devlint.flow.domain.objects import Module, Stateful
from devlint.flow.domain.state import State, availability, merge
from devlint.flow.domain.tensors import DeviceValue, Tensor, as_tensor, placement
from devlint.flow.domain.truths import accelerates, conjunction
from devlint.flow.domain.values import Const, Flag, Opaque, Sequence, Unknown, Value
from devlint.flow.evaluation import device_conditions, predicates
from devlint.flow.evaluation.predicates import predicate
from devlint.flow.program.symbols import FunctionInfo
from devlint.flow.program.type_hints import is_device_name
from devlint.flow.syntax import device_tests, names, nodes
from devlint.immutable import replace
from devlint.source.syntax import says_none

_ACCELERATED_NAME = re.compile(
    r"(?:^|_)(?:cuda|gpu|gpus|use_cuda|use_gpu|on_gpu|n_gpu|num_gpus|ngpus?\w*|rocm|accel|model_parallel)(?:_|$)",
    re.IGNORECASE,
)
_MEMBER = re.compile(r"(?:[A-Z]+_)?(?:CUDA|GPU|XPU|NPU|MLU|HPU|MPS|MUSA|NCCL)")
"""A member of an enumeration which stands for an accelerator, such as ``RNGType.CUDA`` and ``Backend.NCCL``."""
_NEGATIVE_NAME = r"(?i)(?:^|_)(?:no|disable|without|cpu|not)_"
_AVAILABLE_NAME = re.compile(
    r"cuda_is_available|is_(?:torch_)?(?:cuda|gpu|xpu|npu)_available|cuda_available|has_cuda|gpu_available",
    re.IGNORECASE,
)
_CPU_NAME = re.compile(r"^(?:use_|force_|is_)?cpu(?:_only)?$", re.IGNORECASE)
_BACKENDS = frozenset({"gpu", "nccl"})
"""Words that stand for accelerators, and are none that torch knows."""
_SKIP = re.compile(r"skip|require|slow|nightly|gpu|cuda|accelerator|withCUDA|onlyCUDA", re.IGNORECASE)


def condition(frame: Frame, node: ast.expr) -> Flag:
    """The condition that a test expresses; the same key for the same condition on the same values."""
    kept = frame.conditions
    if kept is None:
        return _condition(frame, node)
    flag = kept.get(node)
    if flag is None:
        flag = kept[node] = _condition(frame, node)
    return flag


def _condition(frame: Frame, node: ast.expr) -> Flag:
    for observer in events.heard(frame, "on_condition"):
        observer.on_condition(frame, node)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner, holds = nodes.denied(node)
        flag = condition(frame, inner)
        return flag if holds else flag.negated()
    if isinstance(node, ast.BoolOp):
        return _combined(frame, node)
    if isinstance(node, ast.NamedExpr):
        return condition(frame, node.value)
    if isinstance(node, ast.Call):
        return _called(frame, node)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return _compared(frame, node)
    if isinstance(node, (ast.Name, ast.Attribute)):
        return _named(frame, node)
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return Flag(Truth(node.value))
    if isinstance(node, ast.Subscript) and frame.inlined:
        # an item of something may be a literal, as a caller passes it
        with frame.interpreter.quiet():
            value = frame.evaluate(node)
        if isinstance(value, Const):
            return Flag(Truth(bool(value.value)))
    return Flag(predicates.of(frame, node))


def truth(frame: Frame, flag: Flag) -> bool | None:
    """Whether the condition is known to hold here."""
    if isinstance(flag.condition, Truth):
        return flag.condition.value is flag.positive
    known = frame.state.facts.get(flag.condition)
    if known is None and flag.parts:
        parts = [truth(frame, part) for part in flag.parts]
        known = False if False in parts else True if all(parts) else None
    return None if known is None else known is flag.positive


def _combined(frame: Frame, node: ast.BoolOp) -> Flag:
    parts = [condition(frame, value) for value in node.values]
    every = isinstance(node.op, ast.Or) and all(map(accelerates, parts))
    if isinstance(node.op, ast.Or):
        # De Morgan: either of two holds unless neither does
        parts = [part.negated() for part in parts]
    whole = conjunction(parts, every)
    frame.state.heed(whole)
    if isinstance(whole.condition, Truth):
        return Flag(Truth(whole.condition.value is isinstance(node.op, ast.And)))
    return whole if isinstance(node.op, ast.And) else whole.negated()


def _called(frame: Frame, node: ast.Call) -> Flag:
    path = frame.interpreter.index.resolve(names.dotted(node.func))
    if path == IS_AVAILABLE:
        return availability()
    if RECORDING.search(path):
        return Flag(NEVER)
    if path in ("bool", "int") and len(node.args) == 1:
        return condition(frame, node.args[0])
    if path == "getattr" and len(node.args) > 1 and names.code(node.args[1]) == "'is_cuda'":
        return device_conditions.on_cuda(frame, node.args[0])
    if path in ("any", "all") and node.args and isinstance(node.args[0], (ast.GeneratorExp, ast.ListComp)):
        return Flag(predicates.of(frame, node), accelerated=2 * accelerates(condition(frame, node.args[0].elt)))
    if path in ("isinstance", IS_TENSOR) and node.args:
        known = _type_test(frame, node, path)
        there = known is None and names_accelerator(node.args[-1])
        return Flag(predicates.of_type(frame, node) if known is None else Truth(known), accelerated=int(there))
    return Flag(predicates.of(frame, node), accelerated=_tells(node, path))


def _tells(node: ast.Call, path: str) -> int:
    """What a call says of an accelerator, if it says yes: 1, or 2 where its no says nothing; 0 if it asks otherwise."""
    method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if AVAILABILITY.search(path) or _AVAILABLE_NAME.search(path) or path.rpartition(".")[2] == "is_cuda":
        return 1
    if method == "startswith" and node.args and names_accelerator(node.args[0]):
        return 1
    # without an accelerator nothing is pinned
    return 2 if method == "is_pinned" else 0


def counts(frame: Frame, node: ast.expr) -> bool:
    """Whether a loop over ``node`` goes through the accelerators: ``range(torch.cuda.device_count())``."""
    if not isinstance(node, ast.Call) or names.dotted(node.func) != "range":
        return False
    return any(AVAILABILITY.search(frame.interpreter.index.resolve(names.called(last))) for last in node.args)


def _type_test(frame: Frame, node: ast.Call, path: str) -> bool | None:
    """What ``isinstance`` or ``torch.is_tensor`` says of a name that is known to hold a tensor."""
    if not isinstance(node.args[0], ast.Name):
        return None
    value = frame.lookup(node.args[0].id)
    if not isinstance(value, (Opaque, Tensor)) or value.optional:
        return None
    if not (value.hint == "tensor" if isinstance(value, Opaque) else value.certain):
        return None
    asked = "Tensor" if path == IS_TENSOR else ast.unparse(node.args[-1])
    # of a class of tensors nobody knows whether it is one of these
    return True if re.search(r"\bTensor\b", asked) else None if "Tensor" in asked else False


def _compared(frame: Frame, node: ast.Compare) -> Flag:
    left, operator, right = node.left, node.ops[0], node.comparators[0]
    # what is compared, under the name that it may be given on the way
    left = left.value if isinstance(left, ast.NamedExpr) else left
    positive = isinstance(operator, (ast.Eq, ast.Is, ast.In, ast.Gt, ast.GtE))
    known = _known_comparison(frame, left, operator, right)
    if known is not None:
        return known if positive else known.negated()
    asked = device_conditions.either(frame, left)
    if asked is not None and isinstance(right, ast.Constant) and right.value in ("cpu", "cuda"):
        there = predicate(f"{predicates.key(frame, asked)}.is_cuda")
        return Flag(there, (right.value == "cuda") is positive, 1)
    subject = predicates.key(frame, left)
    compared = predicate(f"{subject} {_OPERATORS.get(type(operator), '?')} {predicates.key(frame, right)}", subject)
    if AVAILABILITY.search(frame.interpreter.index.resolve(names.called(left))):
        none = isinstance(right, ast.Constant) and right.value == 0 and isinstance(operator, (ast.Eq, ast.NotEq))
        return Flag(compared, positive, -1 if none else 1)
    if names_accelerator(right) or names_accelerator(left):
        return Flag(compared, positive, 1)
    if device_conditions.parts(node):
        return Flag(compared, positive, -2)
    if device_conditions.is_cpu(frame, right):
        return Flag(Wanted(compared), not positive, 1)
    if (asks := _tensor_index(frame, left, operator, right)) is not None:
        return asks
    index = _index_test(left, operator, right)
    if index:
        # of no GPU, nothing is on one
        none = isinstance(operator, _ORDERS) and ast.unparse(right) in ("0", "-1") and _is_accelerated(_counted(left))
        return Flag(Wanted(compared) if none else compared, positive, index)
    if isinstance(right, ast.Constant) and isinstance(right.value, bool) and isinstance(operator, (ast.Is, ast.Eq)):
        inner = condition(frame, left)
        return inner if right.value else inner.negated()
    return Flag(compared, positive)


def _known_comparison(frame: Frame, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> Flag | None:
    """What two things being the same is, where the values on the left side say so."""
    value = frame.lookup(left.id) if isinstance(left, ast.Name) else None
    if says_none(right):
        if isinstance(value, Const):
            return Flag(Truth(value.value is None))
        if _surely_set(predicates.held(frame, left) if isinstance(left, ast.Attribute) else value):
            return Flag(NEVER)
    asked = device_conditions.asked(frame, left, right) if isinstance(operator, (ast.Eq, ast.NotEq)) else None
    return _of_literals(frame, left, operator, right) if asked is None and frame.inlined else asked


def _of_literals(frame: Frame, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> Flag | None:
    """What comes of comparing two literals, as a caller passes them, or by default."""
    compare = _COMPARISONS.get(_OPERATORS.get(type(operator), ""))
    first, second = (_literal(frame, side) for side in (left, right))
    if compare is None or first is None or second is None:
        return None
    try:
        return Flag(Truth(compare(first.value, second.value)))
    except TypeError:
        return None


def _literal(frame: Frame, node: ast.expr) -> Const | None:
    if isinstance(node, ast.Constant):
        return Const(node.value)
    value = frame.lookup(node.id) if isinstance(node, ast.Name) else None
    return value if isinstance(value, Const) else None


def _surely_set(value: Value | None) -> bool:
    """Whether it is something, and cannot be ``None``."""
    if isinstance(value, DeviceValue):
        return value.is_object
    return isinstance(value, (Module, Sequence)) or (isinstance(value, Tensor) and value.certain and not value.optional)


def _tensor_index(frame: Frame, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> Flag | None:
    """What the index of a tensor's device says of where that is: it is -1 on the CPU."""
    if isinstance(left, ast.Name):
        value = frame.lookup(left.id)
        held = value.node if isinstance(value, Stateful) and value.path == TENSOR_INDEX else None
        left = held if isinstance(held, ast.Call) else left
    if not isinstance(left, ast.Call) or not isinstance(left.func, ast.Attribute) or left.func.attr != "get_device":
        return None
    there = device_conditions.on_cuda(frame, left.func.value)
    told = (type(operator), ast.unparse(right))
    return there if told in _THERE else there.negated() if told in _ON_THE_HOST else None


_THERE = frozenset({(ast.GtE, "0"), (ast.Gt, "-1"), (ast.NotEq, "-1")})
_ON_THE_HOST = frozenset({(ast.Lt, "0"), (ast.LtE, "-1"), (ast.Eq, "-1")})
"""The comparisons of an index that say that the tensor is on an accelerator, and that it is not."""


def _index_test(left: ast.expr, operator: ast.cmpop, right: ast.expr) -> int:
    """What ``gpu >= 0``, ``gpu is None`` or ``len(gpus) > 0`` tells of an accelerator: +1, -1, or 0."""
    name = _counted(left)
    inner = right.operand if isinstance(right, ast.UnaryOp) else right
    number = isinstance(inner, ast.Constant) and isinstance(inner.value, int)
    accelerated = _is_accelerated(name)
    if not accelerated and not (number and is_device_name(name)):
        return 0
    if isinstance(operator, _ORDERS):
        return 1
    if says_none(right):
        return -1
    text = ast.unparse(right)
    return -1 if text in ("-1", "0") else int(text.isdigit() and accelerated)


def _counted(left: ast.expr) -> str:
    """The last name of what is compared, or of what is counted: ``gpus`` of ``len(args.gpus)``."""
    if isinstance(left, ast.Call) and names.dotted(left.func) == "len" and left.args:
        left = left.args[0]
    return names.dotted(left).rpartition(".")[2]


@functools.lru_cache(maxsize=4096)
def _is_accelerated(name: str) -> bool:
    """Whether a name says that it is about accelerators."""
    return _ACCELERATED_NAME.search(name) is not None


_ORDERS = (ast.Gt, ast.GtE, ast.Lt, ast.LtE)
_OPERATORS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "==", ast.Is: "is", ast.IsNot: "is", ast.In: "in", ast.NotIn: "in",
    ast.Gt: ">", ast.LtE: ">", ast.GtE: ">=", ast.Lt: ">=",
}  # fmt: skip
"""Opposites share their text, so that both branches hang on one guard."""
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {"==": operators.eq, ">": operators.gt, ">=": operators.ge}


def names_accelerator(node: ast.expr) -> bool:
    """Whether a literal (or each of several) names an accelerator."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and _is_accelerator(node.value)
    if isinstance(node, ast.Attribute):
        return (_MEMBER.fullmatch(node.attr) or CUDA_TENSOR_TYPE.fullmatch(names.dotted(node))) is not None
    if isinstance(node, ast.Call) and names.called(node).rpartition(".")[2] == "device":
        return bool(node.args) and names_accelerator(node.args[0])
    if not isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return False
    if all(isinstance(option, ast.Attribute) and names_accelerator(option) for option in node.elts):
        return bool(node.elts)
    texts = [option.value for option in node.elts if isinstance(option, ast.Constant) and isinstance(option.value, str)]
    return not _BACKENDS.isdisjoint(map(str.lower, texts)) or (bool(texts) and all(map(_is_accelerator, texts)))


def _is_accelerator(text: str) -> bool:
    place = device.parse(text.removeprefix("torch.").rstrip(":."))
    there = place is not None and place.kind is Kind.ACCELERATOR
    return there or text.lower() in _BACKENDS or CUDA_TENSOR_TYPE.fullmatch(text) is not None


def _named(frame: Frame, node: ast.Name | ast.Attribute) -> Flag:
    text = names.dotted(node)
    if isinstance(node, ast.Attribute) and node.attr == "is_cuda":
        return device_conditions.on_cuda(frame, node.value)
    if isinstance(node, ast.Attribute) and node.attr == "is_available":
        return Flag(predicates.of(frame, node), accelerated=1)
    if text in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
        return Flag(NEVER)
    value = frame.lookup(text) if isinstance(node, ast.Name) else predicates.held(frame, node)
    if isinstance(node, ast.Attribute) and not isinstance(value, Flag):
        value = None
    if isinstance(value, Flag):
        return value
    if isinstance(value, Const):
        return Flag(Truth(bool(value.value)))
    last = text.rpartition(".")[2]
    tested = predicates.of(frame, node)
    if _CPU_NAME.search(last):
        return Flag(Wanted(tested), False, accelerated=1, by_name=True)
    if _AVAILABLE_NAME.search(last) or _is_accelerated(last):
        wanted = tested if last.lower().endswith("parallel") else Wanted(tested)
        named = _AVAILABLE_NAME.search(last) is None
        return Flag(wanted, re.search(_NEGATIVE_NAME, last) is None, accelerated=1, by_name=named)
    return Flag(tested)


def refine(frame: Frame, test: ast.expr, holds: bool) -> None:
    """What a test says of the names in it, where it holds or not: after ``isinstance(x, torch.Tensor)``, a tensor."""
    test, positive = nodes.denied(test)
    holds = holds is positive
    device_conditions.refine(frame, test, holds)
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) is holds:
        for part in test.values:
            refine(frame, part, holds)
    elif isinstance(test, ast.Compare) and len(test.ops) == 1:
        operator, right = test.ops[0], test.comparators[0]
        if isinstance(operator, (ast.Is, ast.Eq)) and holds and isinstance(test.left, ast.Call):
            _refine_tensor(frame, test.left, right)
        elif isinstance(test.left, ast.Name) and says_none(right):
            _refine_none(frame, test.left.id, isinstance(operator, (ast.Is, ast.Eq)) is holds)
        elif isinstance(operator, (ast.Eq, ast.NotEq)) and isinstance(operator, ast.Eq) is holds:
            _refine_device(frame, test.left, right)
    elif isinstance(test, ast.Name):
        _refine_none(frame, test.id, not holds)
    elif isinstance(test, ast.Call) and holds:
        _refine_tensor(frame, test)


def side(frame: Frame, before: State, test: ast.expr, flag: Flag, holds: bool) -> State:
    """The state in which one side of a test begins, from where the frame goes on."""
    frame.state = state = before.copy()
    state.assume(flag, holds)
    refine(frame, test, holds)
    return state


def meet(frame: Frame, before: State, flag: Flag, then: State, other: State) -> None:
    """The sides of a test are over, and the frame goes on after both."""
    first, second = (then, other) if flag.positive else (other, then)
    before.become(merge(first, second, flag.condition))
    frame.state = before


def rejoined(named: Iterable[str], before: State, then: State, other: State) -> None:
    """The sides of a test of some names meet: what is ``None`` on one, and not on the other, is what it was before."""
    for name in named:
        value = before.env.get(name)
        if not isinstance(value, (Tensor, Opaque)) or not value.optional:
            continue
        sides = then.env.get(name), other.env.get(name)
        if Const(None) in sides and replace(value, optional=False) in sides:
            then.env[name] = other.env[name] = value


def _refine_none(frame: Frame, name: str, none: bool) -> None:
    """A name that may be ``None`` is ``None``, or is not."""
    value = frame.lookup(name)
    if isinstance(value, (Tensor, Opaque)) and value.optional:
        frame.state.env[name] = Const(None) if none else replace(value, optional=False)


def _refine_device(frame: Frame, left: ast.expr, right: ast.expr) -> None:
    """Where ``x.device == device``, ``x`` is there."""
    if not isinstance(left, ast.Attribute) or left.attr != "device" or not isinstance(left.value, ast.Name):
        return
    value = frame.lookup(left.value.id)
    with frame.interpreter.quiet():
        place = placement(frame.evaluate(right))
    if place is not None and isinstance(value, (Tensor, Opaque)):
        frame.state.env[left.value.id] = as_tensor(value).placed(place)


def _refine_tensor(frame: Frame, test: ast.Call, kind: ast.expr | None = None) -> None:
    """What ``isinstance(x, kind)``, ``torch.is_tensor(x)`` or ``type(x) is kind`` says of ``x``."""
    if not test.args or not isinstance(test.args[0], ast.Name):
        return
    name = test.args[0].id
    value = frame.lookup(name)
    path = frame.interpreter.index.resolve(names.dotted(test.func))
    if kind is not None and path != "type":
        return
    if path == "isinstance" and len(test.args) == 2:
        kind = test.args[1]
    asked = "" if kind is None else names.dotted(kind)
    stranger = isinstance(value, Unknown) or (isinstance(value, Opaque) and value.derived)
    if isinstance(value, Opaque) and (path == IS_TENSOR or asked.endswith(("Tensor", "Variable"))):
        frame.state.env[name] = replace(value, hint="tensor")
    elif stranger and device_tests.asks_for_array(test):
        frame.state.env[name] = Stateful(ARRAY)


def decorate(frame: Frame, info: FunctionInfo) -> None:
    """What speaks of a function beside its body: decorators, for a test or an accelerator, and what is imported."""
    around = () if info.owner is None else names.decorators(info.owner.node)
    if any(_SKIP.search(name) for name in (*info.decorators, *around)):
        frame.state.accelerated = True
        frame.state.facts.setdefault(AVAILABLE, True)
    if frame.interpreter.index.dedicated or info.dedicated:
        frame.state.accelerated = True
    if info.name.startswith("test_") or (info.owner is not None and info.owner.name.startswith("Test")):
        frame.test = True


def flag_of(frame: Frame, node: ast.expr) -> Flag | None:
    """The condition that an expression computes, where it is one worth remembering under the name it is given."""
    flag = condition(frame, node)
    opposite = isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Name)
    return flag if flag.telling or opposite else None
