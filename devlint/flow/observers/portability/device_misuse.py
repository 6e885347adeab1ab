"""Devices taken for what they are not: compared with what they never equal, and arguments that are no devices."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from devlint.device import Kind
from devlint.flow.catalog.accelerator_api import CUDA_SCOPE, CUDA_TYPE_NAME, MODULES, TENSOR_INDEX
from devlint.flow.catalog.concepts import DEVICE
from devlint.flow.catalog.creation import is_cpu_type, is_legacy
from devlint.flow.core.call import Call
from devlint.flow.core.events import Observer
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.objects import Module, Stateful
from devlint.flow.domain.tensors import DeviceValue, Tensor, as_tensor, named_place, placement
from devlint.flow.domain.values import Const, Named, Opaque, Sequence, Value
from devlint.flow.program.symbols import ClassInfo
from devlint.flow.syntax import names, nodes
from devlint.sites.devices import DeviceArgument, DeviceTest
from devlint.sites.transfers import Transfer

_TYPES = frozenset(
    """cpu cuda ipu xpu mkldnn opengl opencl ideep ve fpga maia xla lazy vulkan mps meta hpu mtia privateuseone
    npu mlu musa sdaa""".split()
)
"""What torch calls its devices, and what its best known extensions call theirs."""
_NO_TYPES = frozenset({"gpu", "gpus", "rocm", "hip", "nvidia", "amd", "metal", "tpu"})
"""What people call devices, and torch does not; ``hip`` is a name that nothing can be put on."""
_LARGEST_INDEX = 127
_TEXT = re.compile(r"([a-z]+)(?::(0|[1-9][0-9]*))?")
_LOOSE_TEXT = r"\s*([A-Za-z]+)[\s:,_-]*\d*\s*"
_OPERATORS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip


class DeviceMisuse(Observer):
    """Comparisons that say nothing of a device, and arguments that are none."""

    def on_comparison(self, frame: Frame, node: ast.Compare, values: list[Value]) -> None:
        """A comparison: a site if it is one of a device and says nothing about that."""
        if len(values) == 2:
            _note_pair(frame, node, *values)
            _note_type(frame, node)
        elif all(isinstance(operator, ast.Eq) for operator in node.ops):
            _note_chain(frame, node, values)

    def on_device(self, frame: Frame, node: ast.AST, role: str, value: Value | None, call: Call | None) -> None:
        """Something is passed where torch takes a device."""
        if call is not None and value is not None:
            _note_argument(frame, call, node, value, role)

    def on_call(self, frame: Frame, call: Call) -> None:
        """``isinstance(x, torch.LongTensor)``, which no tensor on an accelerator is."""
        if names.dotted(call.node.func) != "isinstance" or len(call.nodes) != 2 or call.starred:
            return
        kinds = call.nodes[1].elts if isinstance(call.nodes[1], ast.Tuple) else [call.nodes[1]]
        paths = [frame.interpreter.index.resolve(names.dotted(kind)) for kind in kinds]
        asked = [kind for kind, path in zip(kinds, paths, strict=True) if is_cpu_type(path)]
        # of several, another one may let them pass
        passes = any(path.startswith("torch.") and not is_cpu_type(path) for path in paths)
        if asked and not passes and isinstance(kind := asked[0], ast.expr) and isinstance(call.nodes[0], ast.expr):
            _of_the_host(frame, call.node, call.nodes[0], kind, "==", call.positional[0])

    def on_creation(self, frame: Frame, call: Call) -> None:
        """Among the values and sizes that are taken by position there may be a device, which is taken by name alone."""
        # after a size in brackets nothing may follow, so that even a stranger's `.device` raises
        sized = bool(call.nodes) and isinstance(call.nodes[0], (ast.Tuple, ast.List))
        for position, (node, value) in enumerate(zip(call.nodes, call.positional, strict=False)):
            told = sized and position and isinstance(node, ast.Attribute) and node.attr == "device"
            if (isinstance(value, DeviceValue) and value.is_object) or (told and not _fills(call, position)):
                _argument(frame, call, node, "device", "position", value)

    def on_library_call(self, frame: Frame, call: Call, path: str) -> None:
        """A module is called, or a constructor that makes tensors of the CPU: ``torch.FloatTensor(device=...)``."""
        if path in MODULES:
            _argument(frame, call, call.node.func, path, "call")
        elif "device" in call.keywords and is_legacy(path) and not frame.interpreter.default_is_set:
            value = call.keywords["device"]
            place = named_place(value)
            if place is not None and any(leaf.kind in (Kind.ACCELERATOR, Kind.SYMBOL) for leaf in place.leaves()):
                _argument(frame, call, call.named()["device"], "device", "legacy", value)

    def on_move(self, frame: Frame, transfer: Transfer, receiver: Value, call: Call) -> None:
        """A ``.to``, ``.cuda`` or ``.cpu`` of what is proven to be a tensor or a module."""
        moved = as_tensor(receiver) if isinstance(receiver, Opaque) else receiver
        if isinstance(moved, Module) or (isinstance(moved, Tensor) and moved.certain):
            _note_move(frame, call, transfer.spelled, isinstance(moved, Module))


def _note_chain(frame: Frame, node: ast.Compare, values: list[Value]) -> None:
    """``a.device == b.device == "cuda"``: of things that equal each other, none is a device and none a string."""
    parts = list(zip((node.left, *node.comparators), values, strict=True))
    subject = next((part for part, value in parts if isinstance(value, DeviceValue) and value.is_object), None)
    other = next((part for part, value in parts if _is_text(value)), None)
    if subject is not None and other is not None:
        _test(frame, node, subject, other, "==", "text")


def _note_pair(frame: Frame, node: ast.Compare, left: Value, right: Value) -> None:
    operator = _OPERATORS.get(type(node.ops[0]), "")
    first, second = node.left, node.comparators[0]
    if operator in ("in", "not in"):
        texts = isinstance(right, Sequence) and right.items and all(map(_is_text, right.items))
        if isinstance(left, DeviceValue) and left.is_object and texts:
            _test(frame, node, first, second, operator, "text")
        elif isinstance(right, DeviceValue) and right.is_object and _is_text(left):
            _test(frame, node, second, first, operator, "membership")
        return
    for subject, value, other_node, other in ((first, left, second, right), (second, right, first, left)):
        if isinstance(value, DeviceValue) and value.is_object:
            problem = _never(operator, value, other)
            if problem:
                _test(frame, node, subject, other_node, operator, problem)
                return
        elif operator in ("==", "!=") and _is_never_kept(frame, subject, value, other):
            _test(frame, node, subject, other_node, operator, "name")
            return


def _note_type(frame: Frame, node: ast.Compare) -> None:
    """``x.type() == "torch.FloatTensor"``, which no tensor on an accelerator has."""
    operator, subject, other = _OPERATORS.get(type(node.ops[0]), ""), node.left, node.comparators[0]
    asks = isinstance(subject, ast.Call) and names.method(subject) == "type" and not nodes.given(subject)
    text = other.value if isinstance(other, ast.Constant) and isinstance(other.value, str) else ""
    if asks and operator in ("==", "!=") and is_cpu_type(text):
        _of_the_host(frame, node, subject, other, operator)


def _of_the_host(
    frame: Frame, node: ast.AST, subject: ast.expr, kind: ast.expr, operator: str, value: Value | None = None
) -> None:
    """A tensor is asked whether it has a type of the CPU, in a file that never speaks of those of CUDA."""
    here = isinstance(value, Tensor) and value.certain and frame.settled(value.device).kind is Kind.CPU
    if not here and CUDA_TYPE_NAME.search(frame.interpreter.text_of_file) is None:
        _test(frame, node, subject, kind, operator, "type")


def _is_never_kept(frame: Frame, subject: ast.expr, value: Value, other: Value) -> bool:
    """Whether a device is compared with a word that torch has not, and is never called so where it is chosen."""
    text = other.value if isinstance(other, Const) else None
    if not isinstance(text, str) or wrong_text(text) != "name":
        return False
    if isinstance(subject, ast.Name) and isinstance(value, DeviceValue) and value.form == "text":
        return all(leaf.kind in (Kind.CPU, Kind.ACCELERATOR) for leaf in value.device.leaves())
    name = names.of_self(subject)
    return bool(name) and frame.owner is not None and _keeps_devices(frame, frame.owner, name)


def _keeps_devices(frame: Frame, owner: ClassInfo, name: str) -> bool:
    """Whether the code gives an attribute, in this class alone, nothing but names of torch's devices."""
    stores = [node for node in owner.nodes if isinstance(node, ast.Assign) and names.of_self(node.targets[0]) == name]
    every = re.findall(rf"\.{name}\b\s*(?::[^=\n]+)?=(?!=)", frame.interpreter.text_of_file)
    kept = [text for node in stores for text in _texts(node.value)]
    return bool(kept) and len(every) == len(stores) and all(text is not None and not wrong_text(text) for text in kept)


def _texts(node: ast.expr) -> Iterator[str | None]:
    """The strings that an expression may be; ``None`` where it may be something else."""
    if isinstance(node, ast.IfExp):
        yield from (*_texts(node.body), *_texts(node.orelse))
    else:
        yield node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _test(frame: Frame, node: ast.AST, subject: ast.expr, other: ast.expr, operator: str, problem: str) -> None:
    frame.emit(DeviceTest(node, scope_of(frame), subject, other, operator, problem))


def _never(operator: str, value: DeviceValue, other: Value) -> str:
    """Why a device and something else never compare equal; empty where they may."""
    if operator in ("is", "is not"):
        return "identity" if _is_text(other) or (isinstance(other, DeviceValue) and other.is_object) else ""
    if operator not in ("==", "!="):
        return ""
    if _is_text(other):
        return "text"
    if not isinstance(other, DeviceValue) or other.form != "made" or value.form != "tensor":
        return ""
    return "index" if other.device.kind is Kind.ACCELERATOR and other.device.index is None else ""


def _is_text(value: Value | None) -> bool:
    if isinstance(value, DeviceValue):
        return value.form == "text"
    return isinstance(value, Const) and isinstance(value.value, str)


# -- arguments --------------------------------------------------------------------------------------------------------


def _note_argument(frame: Frame, call: Call, node: ast.AST, value: Value, role: str) -> None:
    problem = _wrong(frame, value, role)
    if problem:
        _argument(frame, call, node, role, problem, value)


def _argument(frame: Frame, call: Call, node: ast.AST, role: str, problem: str, value: Value | None = None) -> None:
    text = str(value.value) if isinstance(value, Const) else value.path if isinstance(value, Named) else ""
    frame.emit(DeviceArgument(node, scope_of(frame), call.node, role, problem, text))


def _wrong(frame: Frame, value: Value, role: str) -> str:
    """Why something is no device; empty where it may be one."""
    if isinstance(value, Const):
        return _wrong_literal(frame, value.value, role)
    if isinstance(value, Named) and value.path in MODULES:
        return "module"
    if isinstance(value, Stateful):
        return {TENSOR_INDEX: "index", CUDA_SCOPE: "scope"}.get(value.path, "")
    if role == "autocast" and isinstance(value, DeviceValue) and value.is_object:
        return "object"
    return ""


def _wrong_literal(frame: Frame, value: object, role: str) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "number" if role == "map_location" else ""
    if value is None:
        return "none" if role == DEVICE else ""
    renamed = frame.interpreter.index.mentions("rename_privateuse1_backend")
    return wrong_text(value, renamed) if isinstance(value, str) else ""


def wrong_text(text: str, renamed: bool = False) -> str:
    """Why a string names no device; empty where it does, or where an extension of torch may give it a meaning.

    ``renamed`` says that the file gives a name of its own to a device.
    """
    match = _TEXT.fullmatch(text)
    if match is not None and match[1] in _TYPES:
        return "range" if match[2] and int(match[2]) > _LARGEST_INDEX else ""
    loose = re.fullmatch(_LOOSE_TEXT, text)
    if loose is None or loose[1].lower() not in _TYPES | _NO_TYPES:
        return ""
    return "" if renamed and match is not None else "name"


def _note_move(frame: Frame, call: Call, name: str, module: bool) -> None:
    role = f".{name}"
    if name == "cpu":
        for strange in (*call.nodes, *call.keyword_nodes.values()):
            # what is handed on may be nothing
            if not isinstance(strange, ast.Starred):
                _argument(frame, call, strange, role, "unknown")
        return
    first, node = call.argument(0, "device"), call.argument_node(0, "device")
    flag = isinstance(first, Const) and isinstance(first.value, bool)
    if name == "cuda" and module:
        extra = node if flag else call.keyword_nodes.get("non_blocking")
        if extra is not None:
            _argument(frame, call, extra, role, "unknown")
            return
    if name == "cuda" and node is not None and _is_cpu(first):
        _argument(frame, call, node, role, "cpu")
    elif node is not None and first is not None and (name != "to" or not flag):
        _note_argument(frame, call, node, first, role)
    second = call.positional[1] if len(call.positional) > 1 and not call.starred else None
    if name == "to" and isinstance(second, Const) and isinstance(second.value, bool) and _names_device(first):
        _argument(frame, call, call.nodes[1], role, "second", second)


def _names_device(value: Value | None) -> bool:
    """Whether it is no tensor and no dtype, which ``.to`` takes in the same place."""
    return isinstance(value, DeviceValue) or _is_text(value) or (isinstance(value, Opaque) and value.hint == "device")


def _is_cpu(value: Value | None) -> bool:
    place = None if value is None else placement(value)
    return place is not None and place.kind is Kind.CPU


def _fills(call: Call, position: int) -> bool:
    """Whether the argument is the number that ``full`` takes after the size."""
    return position == 1 and names.dotted(call.node.func).rpartition(".")[2] in ("full", "new_full")
