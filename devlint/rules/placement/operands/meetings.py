"""Where two operands on different devices meet, and which rule tells the user about it.

One decision, made in one place, so that one defect is one finding: a tensor kept in a plain attribute is DVL104's,
a tensor created where nobody chose a device is DVL103's, every other meeting is DVL101's.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterable

from devlint.device import ITEMS, Conjunction, Device, EachItem, Kind, LoopRound, Predicate, Returned, Role
from devlint.finding import Severity
from devlint.flow.catalog import distributions
from devlint.flow.catalog.creation import INDEXES
from devlint.flow.syntax.names import of_self
from devlint.flow.syntax.nodes import parameters
from devlint.immutable import immutable, replace
from devlint.rules.code.blocks import function_at, keyword_of, outermost_function, receiver
from devlint.rules.code.control_flow import is_bound_at
from devlint.rules.code.device_candidates import device_at_hand
from devlint.rules.code.device_owners import has_device
from devlint.sites.base import Act, Operand, Scope, Step
from devlint.sites.placement import COPYING, Forward, Hint, HintKind, Operation, OperationKind
from devlint.source.syntax import makes_nothing
from devlint.source.tree import Source

MODULE = "module"
"""The role of the operand that is the called module itself."""
GENERATOR = "generator"
"""The role of the operand with which an operation draws numbers."""
LISTED = "tensors"
"""The role of what is given in a list, under whose name it may be known."""
_ASKED = frozenset({HintKind.HALF, HintKind.UNPLACED, HintKind.UNMOVED})
"""Hints for those who ask: what is placed here and not there may be meant so."""
_STEPS = frozenset({"forward", "training_step", "validation_step", "test_step", "predict_step"})
"""The methods that torch and Lightning give what is on the module's device."""
_CHOSEN_BY_CALLERS = (Predicate, Conjunction, Returned)
"""Conditions of which the callers of a function decide."""
_OF_A_TENSOR = frozenset({"T", "mT", "H", "mH", "data", "real", "imag"})
_WITHOUT_DEVICE = frozenset({"from_numpy", "frombuffer", "from_file", "from_dlpack", "load"})
_SAYS_WHERE = frozenset({"device", "generator", "out", "pin_memory", None})
_PATH = r"[^\W\d]\w*(\.[^\W\d]\w*|\[[\w'\"]+\])*"


@immutable(frozen=True, slots=True)
class Meeting:
    """``stray`` is on the CPU, or on the wrong accelerator; ``other`` is where the work is done.

    ``creation`` is the call that made ``stray`` on the default device, where that is what went wrong: nobody in this
    function chose a device, so nothing but the creation can be mended.  ``partly`` is whether they are apart on some
    paths only, which may be the ones that never come here.
    """

    stray: Operand
    other: Operand
    severity: Severity = Severity.ERROR
    creation: ast.AST | None = None
    partly: bool = False

    @property
    def steps(self) -> tuple[Step, ...]:
        """What both have been through."""
        return (*self.stray.story, *self.other.story)


def meetings(site: Operation | Hint | Forward) -> list[Meeting]:
    """What is wrong at a place where operands have to be on one device: one meeting per operand that strayed."""
    if isinstance(site, Hint):
        return _hinted(site)
    scope = site.scope
    if isinstance(site, Operation) and site.sent and not scope.module:
        # the function moves what comes of it, not what goes in: that may well be on the CPU
        scope = replace(scope, device_aware=False)
    best: dict[int, Meeting] = {}
    kind = site.kind if isinstance(site, Operation) else None
    for first, second in _pairs(site):
        if isinstance(site, Operation) and kind in COPYING:
            meeting = (_written if kind is OperationKind.ACCUMULATOR else _indexed)(first, second, site)
        else:
            meeting = _meeting(first, second, scope)
        if meeting is None:
            continue
        if meeting.creation and kind is OperationKind.GENERATOR:
            # the creation itself fails: its generator, at least, was put somewhere
            meeting = Meeting(meeting.stray, meeting.other)
        # a device that the code chose explains more than one that came with an argument
        known = best.get(id(meeting.stray))
        if known is None or (known.creation is not None and meeting.creation is None):
            best[id(meeting.stray)] = meeting
    return list(best.values())


def _hinted(site: Hint) -> list[Meeting]:
    """What strayed, a new tensor of the default device as a rule, and the operand that shows where it should be."""
    stray, other = site.stray, site.beside
    if site.kind is HintKind.PARTED:
        return [Meeting(stray, other, Severity.WARNING)]
    creation = None if site.kind in _ASKED else stray.factory_node
    told = not site.scope.test and (site.kind in _ASKED or creation is not None)
    return [Meeting(stray, other, Severity.INFO, creation)] if told else []


def beside(operand: Operand, source: Source, site: Forward | Operation | Hint) -> str:
    """An expression for the device of ``operand``, to be used at a place; empty where none is surely at hand."""
    # where a run has had it is nothing that the code should name
    device, scope = operand.device.seen_of or operand.device, site.scope
    if device.kind is Kind.SYMBOL and device.role is Role.INPUT:
        # an argument, not the result of a call, which would be called once more
        shown = re.fullmatch(_PATH, device.text) and has_device(source, site.node, device.text)
        return f"{device.text}.device" if shown else ""
    if device.kind is Kind.SYMBOL and device.role is Role.PLACE:
        if at_hand := device_at_hand(source, site.node, scope):
            return at_hand
        # not `next(self.parameters())`: the replicas of DataParallel have no parameters
        held = _attribute_of_self(operand.node) if operand.role != MODULE else ""
        return f"{held}.device" if held else ""
    if device.kind is Kind.SYMBOL or (device.kind is Kind.CHOICE and device.text):
        if not re.fullmatch(_PATH, device.text):
            return ""
        if is_bound_at(source, device.text.partition(".")[0], site.node):
            return device.text
        # another function's name for it, as the constructor's argument that `self` keeps
        kept = tuple(text for text in scope.devices if text.startswith("self."))
        return device_at_hand(source, site.node, replace(scope, devices=kept))
    if device.kind is Kind.ACCELERATOR:
        return f'"{str(device).strip("`")}"'
    if isinstance(operand.node, ast.Name) and operand.role not in (MODULE, LISTED):
        # where it was put, only the tensor itself can say, and none of the others at hand
        return f"{operand.node.id}.device"
    chosen = tuple(text for text in scope.devices if "." not in text or text.startswith("self."))
    return device_at_hand(source, site.node, replace(scope, devices=chosen))


def is_fetched(operand: Operand) -> bool:
    """Whether somebody has put a tensor on the host on purpose, where it is to be used."""
    return any(step.act is Act.FETCHED for step in operand.story[-1:])


def mere(device: Device) -> bool:
    """Whether nobody in the function chose this device: it is an argument's, or the module's own."""
    elsewhere = [leaf for leaf in device.leaves() if leaf.kind is not Kind.CPU]
    return bool(elsewhere) and all(leaf.role in (Role.INPUT, Role.PLACE) for leaf in elsewhere)


def told_by_caller(device: Device, source: Source, node: ast.AST) -> bool:
    """Whether whoever calls the function around ``node`` says where the device is: by a tensor, or by a device."""
    elsewhere = [leaf for leaf in device.leaves() if leaf.kind is not Kind.CPU]
    functions = (function_at(source, node), outermost_function(source, node))
    signatures = (one.args for one in functions if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)))
    given = {parameter.arg for signature in signatures for parameter in parameters(signature)} - {"self"}
    return bool(elsewhere) and all(
        leaf.role is Role.INPUT or (leaf.kind is Kind.SYMBOL and leaf.text.partition(".")[0] in given)
        for leaf in elsewhere
    )


def takes_device(factory: str) -> bool:
    """Whether the torch function has a ``device=``, as constructors by type and readers of host memory have not."""
    name = factory.rpartition(".")[2]
    # what a distribution draws is where its parameters are
    return name.islower() and name not in _WITHOUT_DEVICE and not factory.startswith(distributions.ROOT)


def can_be_told(factory: str, node: ast.AST | None) -> bool:
    """Whether ``device=`` can be added to a call of a torch function: nothing else in it says where it creates."""
    keywords = node.keywords if isinstance(node, ast.Call) else []
    return takes_device(factory) and not any(keyword.arg in _SAYS_WHERE for keyword in keywords)


def _pairs(site: Operation | Forward) -> Iterable[tuple[Operand, Operand]]:
    if isinstance(site, Operation):
        return itertools.combinations(site.operands, 2)
    callee = site.node.func if isinstance(site.node, ast.Call) else site.node
    module = Operand(callee, site.module, site.device, many=True, certain=True, story=site.story, role=MODULE)
    if site.device.implied and site.story and (site.scope.module or site.scope.device_aware):
        # built right here, as in `nn.BatchNorm2d(c)(x)`
        module = replace(module, factory=site.module, factory_node=site.story[0].node)
    return ((module, tensor) for tensor in site.inputs)


def _meeting(first: Operand, second: Operand, scope: Scope) -> Meeting | None:
    if first.device.differs(second.device) is not True:
        return None
    stray, other = (first, second) if _rank(first.device) > _rank(second.device) else (second, first)
    if not _cpu(stray.device):
        sized = stray.many is not False and other.many is not False
        return Meeting(stray, other) if sized and stray.certain and other.certain else None
    # a 0-dim tensor on the CPU may meet an accelerator
    if stray.many is not True or not other.certain or stray.attribute is not None:
        return None
    if stray.derived and _cpu(stray.device) == 1 and makes_nothing(stray.factory_node):
        # on one path it stands for what a call of others makes on the other, and nobody reads it there
        return None
    # both are taken one by one from lists of several kinds: each of the one meets all of the other
    crossed = isinstance(stray.device.guard, EachItem) and isinstance(other.device.guard, EachItem)
    crossed = crossed and stray.device.guard is not other.device.guard
    if _cpu(stray.device) == _cpu(other.device) == 1 and not crossed:
        # on some paths the one, on some the other: nothing says that they meet
        return None
    # what is on the CPU on some paths only, or very probably a tensor, is very probably a bug
    severity = Severity.ERROR if (_cpu(stray.device) == 2 or crossed) and stray.certain else Severity.WARNING
    # not so the rounds of a loop, and the items of a list, which all come
    partly = not _comes(stray.device) and isinstance(stray.device.guard, _CHOSEN_BY_CALLERS)
    # nor is it elsewhere where a path leaves the other on the CPU, too
    # but a move that one path makes is there to be made
    known = any(leaf.observed for leaf in other.device.leaves()) or any(step.act is Act.MOVED for step in other.story)
    partly = partly or (_cpu(other.device) == 1 and not known and isinstance(other.device.guard, _CHOSEN_BY_CALLERS))
    if not mere(other.device):
        return Meeting(stray, other, severity, partly=partly)
    aware = (scope.module or scope.device_aware) and not other.derived
    # options, samples that are yet to be moved, a state dict: only a step is given batches that are where it works
    aware = aware and (scope.function in _STEPS or not _is_field(other.node))
    # a helper leaves early, for a case that may never come here
    aware = aware and not isinstance(stray.device.guard, Returned)
    if stray.factory and stray.factory_node is not None and not stray.scattered:
        if not aware and _cpu(other.device):
            # what is on the CPU on one path is probably meant for it, and on the other the caller keeps it
            return None
        severity = Severity.WARNING if aware else Severity.INFO
        return Meeting(stray, other, severity, creation=stray.factory_node, partly=partly)
    # who copies a part of the module to the host holds the argument to be there, and so may who knows no devices
    fetched = any(step.act is Act.FETCHED and _is_of_self(step.node) for step in stray.story)
    aware = aware and not (fetched and all(leaf.role is Role.INPUT for leaf in other.device.leaves()))
    # who copies to the host what then meets parameters of the module takes them to be there, but for what torch calls
    taken = is_fetched(stray) and scope.function not in _STEPS
    return Meeting(stray, other, severity, partly=partly or taken) if aware else None


def _comes(device: Device) -> bool:
    """Whether something is on the CPU, or an item of it or a round, whichever way its conditions go."""
    if device.then is None or device.other is None:
        return device.kind is Kind.CPU
    some = any if device.guard is ITEMS or isinstance(device.guard, (EachItem, LoopRound)) else all
    return some(map(_comes, (device.then, device.other)))


def _is_field(node: ast.AST) -> bool:
    """Whether something is a part by name of something else, as it came: ``batch["ids"]``, ``options.weights[1:]``."""
    fields = 0
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Attribute):
            fields += node.attr not in _OF_A_TENSOR
        elif isinstance(node.slice, ast.Constant):
            fields += isinstance(node.slice.value, str)
        node = node.value
    return isinstance(node, ast.Name) and fields > (node.id == "self")


def _written(target: Operand, value: Operand, site: Operation) -> Meeting | None:
    """A write into a part of a tensor, which copies between devices: slow, and the result stays behind."""
    # where the code chose a device, or pinned memory, it may well collect results on the CPU on purpose
    computed = value.certain or (value.derived and site.scope.module and site.operator.startswith("[]"))
    if target.factory_node is None or not computed or not mere(value.device) or not _cpu(target.device):
        return None
    staged = isinstance(target.factory_node, ast.Call) and keyword_of(target.factory_node, "pin_memory") is not None
    # copy_ as a whole is how one copies between devices
    costly = site.scope.module and not value.derived and site.operator.startswith("[]")
    if staged or _cpu(value.device):
        return None
    severity = Severity.WARNING if costly else Severity.INFO
    return Meeting(target, value, severity, creation=target.factory_node)


def _indexed(target: Operand, index: Operand, site: Operation) -> Meeting | None:
    """A write through an index that is elsewhere, which is copied each time."""
    stray, other = (index, target) if _cpu(index.device) else (target, index)
    if stray.many is not True or stray.attribute is not None or stray.scattered:
        return None
    if stray is target:
        meeting = _written(target, index, site)
        return meeting and replace(meeting, severity=Severity.INFO)
    # where the code shows that its own index goes to an accelerator, DVL203 tells of the copy
    told = index.factory in INDEXES and (site.scope.module or not mere(target.device))
    away = target.certain and not _cpu(target.device)
    return Meeting(index, other, Severity.INFO, index.factory_node) if away and index.factory and not told else None


def _rank(device: Device) -> tuple[int, bool]:
    """The higher, the more it is the device that strays: one that is nothing but the CPU before one that changes."""
    return _cpu(device), device.kind is Kind.CPU


def _cpu(device: Device) -> int:
    """How surely the device is the CPU on a machine with an accelerator: 2 surely, 1 on some path, 0 not at all."""
    if all(leaf.kind is Kind.CPU for leaf in device.leaves()):
        return 2
    if isinstance(device.guard, LoopRound) and device.then is not None and device.other is not None:
        # so it is when the loop begins, or in later rounds
        return max(_cpu(device.then), _cpu(device.other))
    return int(not device.switched and any(leaf.kind is Kind.CPU for leaf in device.leaves()))


def _is_of_self(node: ast.AST) -> bool:
    """Whether it is what methods make of an attribute of ``self``."""
    while (inner := receiver(node)) is not None:
        node = inner
    return bool(of_self(node))


def _attribute_of_self(node: ast.AST) -> str:
    """``self.weight`` for ``self.weight`` and ``self.weight.t()[0]``, nothing for the result of ``self.layer(x)``."""
    while isinstance(node, ast.Subscript) or isinstance(receiver(node), ast.Attribute):
        node = node.value if isinstance(node, ast.Subscript) else receiver(node) or node
    return ast.unparse(node) if of_self(node) else ""
