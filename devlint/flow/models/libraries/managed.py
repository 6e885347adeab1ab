"""What a library places by itself: models with a device map, prepared or offloaded ones, and Lightning's hooks."""

from __future__ import annotations

import ast
import re

from devlint import device
from devlint.device import Device, Kind, Role
from devlint.flow.catalog.concepts import ACCELERATOR
from devlint.flow.core import events
from devlint.flow.core.call import Call
from devlint.flow.core.events import Observer
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.registry import CLASSES, EFFECTS, MODELS, ObjectModel
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.heap import DEVICE, ORIGIN, Field
from devlint.flow.domain.objects import Module, Stateful
from devlint.flow.domain.tensors import Tensor
from devlint.flow.domain.values import UNKNOWN, Const, Managed, Opaque, Sequence, Value, is_literal
from devlint.flow.models.libraries import encoders, pretrained
from devlint.flow.models.libraries.unknown import told, unfollowed
from devlint.flow.program.symbols import FunctionInfo
from devlint.flow.syntax import names
from devlint.sites.base import Step
from devlint.sites.placement import ManagedMove
from devlint.sites.transfers import Transfer

_OFFLOADS = frozenset({"enable_model_cpu_offload", "enable_sequential_cpu_offload"})
"""Methods of diffusers' pipelines that put their models on the device only while these run."""
_PIPELINES = "diffusers"
"""Whose pipelines know all of their parts."""
_QUANTIZATION = "transformers.BitsAndBytesConfig"
_RELEASES = frozenset({"reset_device_map", "remove_all_hooks", "remove_hook_from_module"})
"""Methods, and a function, after which the code places things again."""
_SPREAD = frozenset({"auto", "balanced", "balanced_low_0", "sequential"})
_LIGHTNING = "pytorch_lightning.LightningModule"
_HOOK = re.compile(r"(?:training|validation|test|predict)_step|on_\w+|configure_optimizers")
_GETS_BATCH = r"\w+_step|on_\w+_batch_(?:start|end)|on_after_batch_transfer"
"""Hooks whose arguments the trainer has put on the device, unlike a checkpoint that it has read."""
_LEADING_NAME = r"\w+"
_LOADED_HOW = r"device_map|is_loaded_in|quantiz|hf_hook|offload"
MANAGED = Field("managed", Managed)
"""Who places a module, or offloads what a library has loaded."""
PIPELINE = "pipeline"
"""What brings all that it is given to where its parts are."""
_OFFLOADED = Field("offloaded", Device)
"""The CPU, where something has been offloaded; known of a branch only, it is unknown where the branches have met."""
_RELEASED = Field("released", Device)
"""The same of what may be moved again."""


def _loaded(frame: Frame, call: Call, path: str) -> Value:
    """``X.from_pretrained(...)``: whether what it loads is placed for good."""
    unfollowed(frame, call)
    told(frame, call, path)
    encoder = encoders.loaded(call, path)
    if encoder is not None:
        return encoder
    spread = call.keywords.get("device_map")
    if is_literal(call.keywords.get("load_in_8bit"), True) or _eight_bits(call.keywords.get("quantization_config")):
        return thing(frame, call, Managed("8-bit", Step(call.node, "loaded in 8 bits here")))
    if isinstance(spread, Const) and spread.value in _SPREAD:
        # the pipelines of today take no other map
        whole = path.startswith("diffusers.") and "Pipeline" in path and spread.value == "balanced"
        kind = "mapped pipeline" if whole else "device map"
        return thing(frame, call, Managed(kind, Step(call.node, f"`device_map={spread.value!r}` places it here")))
    if "Pipeline" in path.removesuffix(".from_pretrained").rpartition(".")[2]:
        return thing(frame, call, Managed(PIPELINE, Step(call.node, "loaded here")))
    return pretrained.network(frame, call, path)


def _configured(frame: Frame, call: Call, path: str) -> Value:
    """``X.from_config(...)``: the same without its weights."""
    unfollowed(frame, call)
    told(frame, call, path)
    return pretrained.network(frame, call, path)


def _accelerator(frame: Frame, call: Call, path: str) -> Value:
    """``Accelerator(...)``."""
    unfollowed(frame, call)
    if "device_placement" in call.keywords or call.open or call.positional:
        return UNKNOWN
    return thing(frame, call, Managed(ACCELERATOR, Step(call.node, "made here")))


def _prepared(frame: Frame, call: Call) -> Value:
    """``accelerator.prepare(...)``: the same things, placed."""
    if call.starred or call.open or call.keywords:
        return UNKNOWN
    managed = Managed("prepared", Step(call.node, "prepared here"))
    things = tuple(thing(frame, call, managed, position) for position in range(len(call.positional)))
    return things[0] if len(things) == 1 else Sequence(things, UNKNOWN)


def _offload(frame: Frame, call: Call, receiver: Value, node: ast.Attribute) -> None:
    """``pipeline.enable_model_cpu_offload()``: a move before it was for nothing, a move after it undoes it."""
    by = Step(call.node, "set up to be offloaded here")
    if isinstance(receiver, Opaque):
        heap = frame.state.heap
        place, origin = DEVICE.of(heap, receiver.key), ORIGIN.of(heap, receiver.key)
        _OFFLOADED.put(heap, receiver.key, device.CPU)
        MANAGED.put(
            heap, receiver.key, Managed("sequentially offloaded" if "sequential" in node.attr else "offloaded", by)
        )
    elif isinstance(receiver, Tensor) and not receiver.certain:
        place, origin = receiver.device, receiver.origin
    else:
        return
    step = origin.story[0] if origin is not None and origin.story else None
    if place is None or step is None or not isinstance(step.node, ast.Call):
        return
    move = step.node.func
    if not isinstance(move, ast.Attribute) or not place.known or place.kind is Kind.CPU:
        return
    made = names.dotted(move.value.func) if isinstance(move.value, ast.Call) else ""
    root = frame.interpreter.index.resolve(made).partition(".")[0]
    # a pipeline of somebody else may have parts that nothing else moves
    if root in ("", _PIPELINES):
        operand = frame.operand(move.value, UNKNOWN)
        frame.emit(ManagedMove(step.node, scope_of(frame), move.attr, operand, place, "offloaded later", by))


def _release(frame: Frame, call: Call, receiver: Value, node: ast.Attribute) -> None:
    """``pipeline.reset_device_map()``: from here on, it may be moved."""
    if isinstance(receiver, Opaque):
        _RELEASED.put(frame.state.heap, receiver.key, device.CPU)
        frame.state.heap.pop((receiver.key, _OFFLOADED), None)


class ManagedMoves(Observer):
    """Moves of what is placed by a library."""

    def on_move(self, frame: Frame, transfer: Transfer, receiver: Value, call: Call) -> None:
        """A site, where moving it does nothing, or undoes what the library does."""
        target = transfer.target
        if target is None or target.kind is Kind.CPU:
            return
        managed = _manager(frame, receiver) or _hook(frame, receiver, target)
        if managed is None or (managed.kind == "prepared" and not transfer.plain) or _asks(frame, call.node):
            return
        operand = frame.operand(transfer.value.node, receiver)
        frame.emit(
            ManagedMove(
                call.node, scope_of(frame), transfer.spelled, operand, target, managed.kind, managed.by, managed.part
            )
        )


def _asks(frame: Frame, call: ast.AST) -> bool:
    """Whether a condition around the move asks how the model was loaded."""
    return any(
        isinstance(node, (ast.If, ast.IfExp))
        and node.lineno <= getattr(call, "lineno", 0) <= (node.end_lineno or 0)
        and re.search(_LOADED_HOW, ast.unparse(node.test))
        for node in frame.inside
    )


def thing(frame: Frame, call: Call, managed: Managed, position: int = 0) -> Opaque:
    """Something of which nothing is known but who places it."""
    node = call.node
    key = f"{frame.name}:managed@{node.lineno}:{node.col_offset}:{position}"
    return Opaque(key, frame.interpreter.text(node), managed=managed)


def _manager(frame: Frame, receiver: Value) -> Managed | None:
    if isinstance(receiver, Module):
        return MANAGED.of(frame.state.heap, receiver.oid)
    if not isinstance(receiver, Opaque) or (receiver.key, _RELEASED) in frame.state.heap:
        return None
    if receiver.managed is not None and receiver.managed.kind != PIPELINE:
        return None if receiver.managed.kind == ACCELERATOR else receiver.managed
    offloaded = _OFFLOADED.of(frame.state.heap, receiver.key) == device.CPU
    return MANAGED.of(frame.state.heap, receiver.key) if offloaded else None


def _hook(frame: Frame, receiver: Value, target: Device) -> Managed | None:
    """What Lightning's trainer has placed before it calls a hook."""
    info, owner = frame.info, frame.owner
    if info is None or owner is None or not _HOOK.fullmatch(info.name) or _LIGHTNING not in owner.roots():
        return None
    given = _argument(info, receiver)
    if given is not None:
        by = Step(given, "the trainer calls this with everything placed")
    else:
        by = Step(next(iter(info.parameters), info.node), "the trainer has placed all of it before it calls this")
    part = given is None and not isinstance(receiver, Module)
    if target.kind is Kind.ACCELERATOR or target.switched:
        return Managed("Lightning", by, part=part)
    if target.kind is not Kind.SYMBOL or target.role is not Role.DEVICE:
        return None
    if target.text != "self.device":
        return Managed("Lightning", by, part=part)
    return Managed("Lightning's own", by) if given is not None and re.fullmatch(_GETS_BATCH, info.name) else None


def _argument(info: FunctionInfo, value: Value) -> ast.arg | None:
    """The parameter of a function of which a value is the argument, or a part of it."""
    key = ""
    if isinstance(value, Opaque) and value.role is Role.INPUT:
        key = value.key
    elif isinstance(value, Tensor) and value.device.role is Role.INPUT:
        key = value.device.symbol
    prefix, colon, rest = key.partition(f"{info.qualname}:")
    name = re.match(_LEADING_NAME, rest) if colon and not prefix else None
    arguments = (*info.parameters, info.node.args.vararg, info.node.args.kwarg)
    return next((known for known in arguments if known and name and known.arg == name[0]), None)


def _eight_bits(value: Value | None) -> bool:
    """Whether a configuration asks for 8 bits."""
    node = value.node if isinstance(value, Stateful) and value.path == _QUANTIZATION else None
    keywords = node.keywords if isinstance(node, ast.Call) else []
    return any(
        keyword.arg == "load_in_8bit" and isinstance(keyword.value, ast.Constant) and keyword.value.value is True
        for keyword in keywords
    )


def _quantization(frame: Frame, call: Call, path: str) -> Value:
    unfollowed(frame, call)
    return Stateful(path, node=call.node)


class _Accelerator(ObjectModel):
    def method(self, frame: Frame, call: Call, value: Value, node: ast.Attribute) -> Value | None:
        for observer in events.heard(frame, "on_library_call"):
            observer.on_library_call(frame, call, f"{ACCELERATOR}.{node.attr}")
        return _prepared(frame, call) if node.attr == "prepare" else None


MODELS.register(
    {".from_pretrained": _loaded, ".from_config": _configured, ACCELERATOR: _accelerator, _QUANTIZATION: _quantization}
)
CLASSES.register({ACCELERATOR: _Accelerator()})
EFFECTS.update({**dict.fromkeys(_OFFLOADS, _offload), **dict.fromkeys(_RELEASES, _release)})
