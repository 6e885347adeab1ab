"""Calls of modules: their inputs have to be where they are."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from devlint import device
from devlint.device import Device, Kind, Role
from devlint.flow.core import events
from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.heap import CONSUMER, DEVICE, STORY
from devlint.flow.domain.values import (
    UNKNOWN,
    Mapping,
    Module,
    Opaque,
    Sequence,
    Tensor,
    Value,
    as_tensor,
)
from devlint.flow.models.nn import forward_inputs, summaries
from devlint.flow.models.nn.construction import CONTAINERS
from devlint.flow.models.nn.parallel import WRAPPERS
from devlint.flow.models.torch import tensor_methods
from devlint.flow.program.identity import identity
from devlint.flow.program.module_classes import holds_only_tensors
from devlint.flow.syntax import names
from devlint.flow.transfer import loop_invariance
from devlint.flow.transfer.device_queue import Queue
from devlint.flow.transfer.placement import blend, derive, is_tensor, meet, returned, strays
from devlint.immutable import replace
from devlint.sites.placement import Forward, OperationKind

_CAUSAL_MASKS = {
    "torch.nn.TransformerEncoder": ((1, "mask"),),
    "torch.nn.TransformerDecoder": ((2, "tgt_mask"),),
    "torch.nn.Transformer": ((2, "src_mask"), (3, "tgt_mask")),
}
"""Masks that are not used if they are causal, and may stay anywhere then, in training at least: position and name."""
_KEEPS_RANK = re.compile(
    r"torch\.nn\.(Linear|\w*Norm(\dd)?|Conv(Transpose)?\dd|\w*Dropout(\dd)?|\w*ReLU6?|[CSG]?ELU|Sigmoid|Tanh|SiLU"
    r"|Softplus|(Log)?Softmax|Identity)$"
)
"""Layers whose results have as many dimensions as their inputs."""
_RECURRENT = frozenset({"torch.nn.RNN", "torch.nn.LSTM", "torch.nn.GRU"})


def forward(frame: Frame, call: Call, module: Module) -> Value:
    """Calling a module: its inputs have to be where it is, and it is given work to do there."""
    queue, place = frame.component(Queue), frame.place_of(module)
    if module.cls is not None and place.known:
        queue.work(frame, call.node, place)
        # its own code says whether it waits in the end
        return _called(frame, call, module)
    result = _called(frame, call, module)
    if place.known and (module.path or names.dotted(call.node.func) in loop_invariance.networks(frame)):
        queue.work(frame, call.node, place)
    else:
        # what was moved may be a pipeline, which waits for its results
        queue.unseen(frame, call.node)
    return result


def _called(frame: Frame, call: Call, module: Module) -> Value:
    if module.perhaps or frame.interpreter.index.hooked:
        return derive(frame, call)
    operands = [(node, value, "") for node, value in _inputs(call)]
    tensors_in = [met for met in operands if is_tensor(met[1])]
    place = frame.place_of(module)
    clash = False
    if module.has_state and not module.spread and not summaries.idle(module):
        if module.path.startswith("torch.nn."):
            # no layer of torch takes a 0-dim tensor
            tensors_in = [(node, _with_dimensions(value), role) for node, value, role in tensors_in]
        unread = [call.argument_node(*mask) for mask in _CAUSAL_MASKS.get(module.path, ())]
        tensors_in = [met for met in tensors_in if met[0] not in unread]
        clash = check(frame, call, module, place, forward_inputs.due(frame, call, module, place, tensors_in))
        for observer in events.heard(frame, "on_module_call"):
            observer.on_module_call(frame, call, module, place)
    elif module.path == "torch.nn.CTCLoss":
        # it moves its targets and lengths itself
        pass
    elif not module.has_state and module.path.endswith("Loss"):
        meet(frame, call.node, module.text, OperationKind.LOSS_TARGET, tensors_in)
    elif not module.has_state and len(tensors_in) > 1 and module.path.startswith("torch.nn."):
        meet(frame, call.node, module.text, OperationKind.OPERANDS, tensors_in)
    if module.has_state and place.role is Role.PLACE:
        for _, value, _ in tensors_in:
            frame.state.heap.setdefault((as_tensor(value).device.symbol, CONSUMER), place)
    definite = [met[1] for met in tensors_in if tensor_methods.is_definite(met[1])]
    if clash and place.kind is Kind.CPU:
        # one mistake is told once: go on as if the module was where its input is
        place = next(where for where in map(_where(frame), tensors_in) if where.differs(place))
    if module.cls is not None:
        return summaries.own(frame, call, module, place)
    return _output(frame, call, module, place, definite)


def _with_dimensions(value: Value) -> Value:
    return replace(value, many=True) if isinstance(value, Tensor) and value.many is None else value


def _where(frame: Frame) -> Callable[[tuple[ast.AST, Value, str]], Device]:
    return lambda met: frame.state.settled(as_tensor(met[1]).device)


def check(frame: Frame, call: Call, module: Module, place: Device, inputs: list[tuple[ast.AST, Value, str]]) -> bool:
    """Whether some of the inputs surely are not where the module is: a site."""
    clashing = strays(frame, inputs, place, module)
    alone = clashing and module.cls is not None and holds_only_tensors(module.cls)
    if alone and not summaries.meets_state(frame, call, module, [value for _, value, _ in clashing]):
        return False
    if clashing:
        for observer in events.heard(frame, "on_stray_inputs"):
            observer.on_stray_inputs(frame, clashing)
        given = tuple(frame.operand(node, value, role) for node, value, role in inputs)
        frame.emit(
            Forward(
                call.node, scope_of(frame), frame.interpreter.text(call.node.func), place, frame.story_of(module), given
            )
        )
    return bool(clashing)


def _output(frame: Frame, call: Call, module: Module, place: Device, inputs: list[Value]) -> Value:
    """What a call returns: tensors on the module's device, else with the inputs."""
    if not module.path.startswith("torch.nn."):
        return UNKNOWN if module.spread else returned(frame, call, place)
    if module.path in CONTAINERS or module.path in WRAPPERS:
        if module.has_state:
            return UNKNOWN if module.spread else Tensor(place, many=True, story=frame.story_of(module), grad="graph")
        return blend(*inputs) if inputs else UNKNOWN
    many: bool | None = None if module.path.endswith("Loss") else True
    if not module.has_state:
        result = blend(*inputs) if inputs else Tensor(device.UNKNOWN)
        rank = result.rank if _KEEPS_RANK.match(module.path) else None
        return replace(result, many=many if many is None else result.many, rank=rank, certain=True)
    rank = as_tensor(inputs[0]).rank if len(inputs) == 1 and _KEEPS_RANK.match(module.path) else None
    result = Tensor(place, many=many, rank=rank, certain=True, story=frame.story_of(module), grad="graph")
    if module.path in _RECURRENT:
        state: Value = Sequence((result, result), result) if module.path.endswith("LSTM") else result
        return Sequence((result, state), UNKNOWN)
    if module.path == "torch.nn.MultiheadAttention":
        return Sequence((result, UNKNOWN), UNKNOWN)
    return result


def _inputs(call: Call) -> list[tuple[ast.AST, Value]]:
    found: list[tuple[ast.AST, Value]] = []
    for node, value in call.given():
        if isinstance(value, Sequence) and value.items is not None:
            inner = (
                node.elts
                if isinstance(node, (ast.Tuple, ast.List)) and len(node.elts) == len(value.items)
                else [node] * len(value.items)
            )
            found.extend(zip(inner, value.items, strict=True))
        elif isinstance(value, Mapping):
            found.extend((node, held) for _, held in value.items)
        else:
            found.append((node, value))
    return found


def placed_stranger(frame: Frame, called: Opaque) -> Module | None:
    """Something unknown that was moved in place and is now called: a module."""
    place = DEVICE.of(frame.state.heap, called.key)
    if place is None:
        return None
    module = Module(identity(), text=called.text, has_state=True)
    frame.put(module, place, next(iter(STORY.of(frame.state.heap, called.key) or ()), None))
    return module
