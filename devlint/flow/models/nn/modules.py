"""Modules: made on the CPU unless told otherwise, moved in place, called with tensors that have to be with them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from devlint import device
from devlint.device import Device, Kind, Role
from devlint.flow.catalog import methods, torch_table
from devlint.flow.core import events
from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.registry import KINDS, MODELS, ObjectModel
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.heap import ANY, CHANGED, CHILDREN, CONSUMER, DEVICE, REGISTERED, STORY
from devlint.flow.domain.values import (
    UNKNOWN,
    Batches,
    Const,
    Function,
    Mapping,
    Module,
    Named,
    Opaque,
    Sequence,
    Tensor,
    Value,
    as_tensor,
    named_place,
)
from devlint.flow.models.nn import forward_inputs, summaries
from devlint.flow.models.nn.parallel import WRAPPERS
from devlint.flow.models.torch import moves, tensor_methods
from devlint.flow.models.torch.functions import function
from devlint.flow.observers.costs.device_queue import Queue
from devlint.flow.observers.placement.unregistered_tensors import Attributes
from devlint.flow.observers.portability import device_literals
from devlint.flow.program.identity import identity
from devlint.flow.program.module_classes import holds_only_tensors
from devlint.flow.syntax import names
from devlint.flow.transfer import composition, module_state, step_loops
from devlint.flow.transfer.escapes import Escapes
from devlint.flow.transfer.placement import blend, derive, is_tensor, meet, returned, strays
from devlint.immutable import replace
from devlint.sites.base import Step
from devlint.sites.placement import Forward

CONTAINERS = frozenset({"torch.nn.Sequential", "torch.nn.ModuleList", "torch.nn.ModuleDict"})
_CHAINED = frozenset(
    """train eval half float double bfloat16 type requires_grad_ apply share_memory compile to_empty
    register_forward_hook zero_grad""".split()
)
_CAUSAL_MASKS = {
    "torch.nn.TransformerEncoder": ((1, "mask"),),
    "torch.nn.TransformerDecoder": ((2, "tgt_mask"),),
    "torch.nn.Transformer": ((2, "src_mask"), (3, "tgt_mask")),
}
"""Masks that are not used if they are causal, and may stay anywhere then, in training at least: position and name."""
_ONLY_LOOK = frozenset(
    """children named_children modules named_modules get_parameter get_buffer get_submodule get_extra_state
    load_state_dict register_forward_pre_hook register_full_backward_hook register_full_backward_pre_hook
    register_backward_hook register_state_dict_post_hook register_load_state_dict_post_hook extra_repr""".split()
)
"""Methods of every module which put no part of it anywhere."""
_KEEPS_RANK = re.compile(
    r"torch\.nn\.(Linear|\w*Norm(\dd)?|Conv(Transpose)?\dd|\w*Dropout(\dd)?|\w*ReLU6?|[CSG]?ELU|Sigmoid|Tanh|SiLU"
    r"|Softplus|(Log)?Softmax|Identity)$"
)
"""Layers whose results have as many dimensions as their inputs."""
_RECURRENT = frozenset({"torch.nn.RNN", "torch.nn.LSTM", "torch.nn.GRU"})


def construct(frame: Frame, call: Call, path: str) -> Value:
    """A new module of ``torch.nn``."""
    if path in CONTAINERS:
        return _contain(frame, call, Module(identity(), path, text=path.rpartition(".")[2]))
    known = torch_table.module(path)
    module = Module(
        identity(),
        path,
        text=path.rpartition(".")[2],
        has_state=bool(known and (known.has_params or known.has_buffers)),
        empty=module_state.made_empty(call, path),
    )
    if known and any(_is_false(call.keywords.get(name)) for name in ("affine", "elementwise_affine")):
        module = replace(module, has_state=known.has_buffers)
    buffers = [value for name, value in call.keywords.items() if known and name in known.buffer_arguments]
    if call.positional and known and "weight" in known.buffer_arguments:
        buffers.append(call.positional[0])
    if known and known.buffer_arguments:
        return _loss(frame, call, module, buffers)
    place, step = made_on(frame, call, module)
    frame.put(module, place, step)
    return module


def _is_false(value: Value | None) -> bool:
    return isinstance(value, Const) and value.value is False


def made_on(frame: Frame, call: Call, module: Module, argument: str = "device") -> tuple[Device, Step | None]:
    """Where a call makes a module, and the step that says so."""
    asked = call.keywords.get(argument)
    if asked is not None and not (isinstance(asked, Const) and asked.value is None):
        place = named_place(asked) or device.UNKNOWN
        return place, Step(call.node, f"`{module.text}` is created on {place} here")
    if call.open or frame.interpreter.default_changed:
        return device.UNKNOWN, None
    if frame.default_device is not None:
        return frame.default_device, Step(call.node, f"`{module.text}` is created on {frame.default_device} here")
    return device.IMPLIED_CPU, Step(call.node, f"`{module.text}` is created on the CPU here")


def _loss(frame: Frame, call: Call, module: Module, buffers: list[Value]) -> Module:
    """A loss, whose ``weight`` is a buffer; without one it lives nowhere."""
    weights = [value for value in buffers if is_tensor(value)]
    if not weights:
        return replace(module, has_state=False)
    tensor = as_tensor(weights[0])
    if isinstance(weights[0], Opaque) and weights[0].hint != "tensor":
        # may be None
        frame.put(module, device.UNKNOWN, None)
        return replace(module, has_state=True)
    frame.put(module, frame.state.settled(tensor.device), tensor.story[0] if tensor.story else None)
    return replace(module, has_state=True)


def _contain(frame: Frame, call: Call, module: Module) -> Module:
    values: list[Value] = []
    for value in call.positional:
        values.extend(value.items or (value.item,) if isinstance(value, Sequence) else (value,))
    children = tuple(value for value in values if isinstance(value, Module))
    stateful = [child for child in children if child.has_state]
    complete = len(children) == len(values) and not (call.open or call.starred)
    CHILDREN.put(frame.state.heap, module.oid, children)
    places = {frame.place_of(child) for child in stateful}
    if len(places) == 1 and complete:
        step = Step(call.node, f"`{module.text}` is created on the CPU here")
        place = places.pop()
        frame.put(module, place, step if place.implied else next(iter(frame.story_of(stateful[0])), None))
    else:
        frame.put(module, device.UNKNOWN, None)
    paths = {child.path for child in children}
    spread = len(places) != 1 and (not complete or any(child.spread for child in children))
    empty = complete and all(module_state.is_empty(frame, child) for child in children)
    of_torch = complete and all(child.path and child.cls is None for child in children)
    item = paths.pop() if len(paths) == 1 else "torch.nn.Module" if of_torch else ""
    own = {child.cls for child in children} if complete else set()
    module = replace(module, item=item, item_cls=own.pop() if len(own) == 1 else None)
    return replace(module, has_state=bool(stateful) or not complete, spread=spread, empty=empty)


def twin(frame: Frame, module: Module) -> Module:
    """A deep copy: another module on the same device."""
    copy = replace(module, oid=identity())
    frame.put(copy, frame.place_of(module), next(iter(frame.story_of(module)), None))
    return copy


def placed_stranger(frame: Frame, called: Opaque) -> Module | None:
    """Something unknown that was moved in place and is now called: a module."""
    place = DEVICE.of(frame.state.heap, called.key)
    if place is None:
        return None
    module = Module(identity(), text=called.text, has_state=True)
    frame.put(module, place, next(iter(STORY.of(frame.state.heap, called.key) or ()), None))
    return module


def forward(frame: Frame, call: Call, module: Module) -> Value:
    """Calling a module: its inputs have to be where it is, and it is given work to do there."""
    queue, place = frame.component(Queue), frame.place_of(module)
    if module.cls is not None and place.known:
        queue.work(frame, call.node, place)
        # its own code says whether it waits in the end
        return _called(frame, call, module)
    result = _called(frame, call, module)
    if place.known and (module.path or names.dotted(call.node.func) in step_loops.networks(frame)):
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
        clash = _check(frame, call, module, place, forward_inputs.due(frame, call, module, place, tensors_in))
        events.module_call(frame, call, module, place)
    elif module.path == "torch.nn.CTCLoss":
        # it moves its targets and lengths itself
        pass
    elif not module.has_state and module.path.endswith("Loss"):
        meet(frame, call.node, module.text, "loss target", tensors_in)
    elif not module.has_state and len(tensors_in) > 1 and module.path.startswith("torch.nn."):
        meet(frame, call.node, module.text, "operands", tensors_in)
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


def _check(frame: Frame, call: Call, module: Module, place: Device, inputs: list[tuple[ast.AST, Value, str]]) -> bool:
    clashing = strays(frame, inputs, place, module)
    alone = clashing and module.cls is not None and holds_only_tensors(module.cls)
    if alone and not summaries.meets_state(frame, call, module, [value for _, value, _ in clashing]):
        return False
    for node, value, _ in clashing:
        tensor = as_tensor(value)
        if tensor.attribute is not None and frame.after_init and tensor.many is not False:
            frame.component(Attributes).use(value, node, "goes into a module on the module's device here")
    if clashing:
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


def method(frame: Frame, call: Call, module: Module, node: ast.Attribute) -> Value:
    """The result of ``module.name(...)``."""
    name = node.attr
    if name in methods.OF_MODULES:
        return moves.move_module(frame, call, module, node)
    value = frame.interpreter.attribute(frame, node, module)
    if isinstance(value, (Module, Function)):
        if isinstance(value, Module):
            return forward(frame, call, value)
        _hand_over(frame, call, module, value)
        return summaries.of_method(frame, call, module, value)
    if name in _CHAINED:
        return module
    if name in ("register_buffer", "register_parameter"):
        return _register(frame, call, module)
    if name in PARAMETERS:
        own = module.text == "self" and frame.after_init and (module.oid, DEVICE) not in frame.state.heap
        place = frame.own_place() if own else frame.place_of(module)
        return parameters(name, Tensor(place, many=None, buffer=True, story=frame.story_of(module)))
    if name == "forward":
        return forward(frame, call, module)
    if isinstance(value, Opaque):
        device_literals.literal_devices(frame, call)
    if name not in _ONLY_LOOK:
        CHANGED.put(frame.state.heap, module.oid, True)
    frame.component(Escapes).everything(call.values())
    frame.component(Queue).unseen(frame, call.node)
    # a part of the module works where the module is, and what goes in
    part = module.text == "self" and frame.after_init and not isinstance(value, Named)
    return derive(frame, call) if part else UNKNOWN


def _hand_over(frame: Frame, call: Call, module: Module, function: Function) -> None:
    """A method of a moved module: what it gives to the module's layers has to be where the module is."""
    place, info = frame.place_of(module), module.cls
    if info is None or module.text == "self" or not place.known or frame.interpreter.muted or module.perhaps:
        return
    given = [(node, value, "") for node, value in call.given() if isinstance(value, Tensor)]
    met = strays(frame, given, place, module)
    if not met or module.spread or frame.interpreter.index.hooked:
        return
    fed = _fed(frame, call, replace(function, bound=frame.interpreter.self_value(info)), [value for _, value, _ in met])
    _check(frame, call, module, place, [one for one in met if id(one[1]) in fed])


def _fed(frame: Frame, call: Call, function: Function, values: list[Value]) -> set[int]:
    """Those of the arguments, by identity, that a method hands on to its module's layers as they are."""
    probes = {
        id(value): Opaque(f"{frame.name}:probe@{call.node.lineno}:{place}", "", "tensor", Role.INPUT)
        for place, value in enumerate(values)
    }
    with frame.interpreter.quiet():
        outer = frame.state.heap
        frame.state.heap = dict(outer)
        frame.interpreter.enter(frame, function, call.probing(probes))
        found = {known for known, probe in probes.items() if (probe.key, CONSUMER) in frame.state.heap}
        frame.state.heap = outer
    return found


PARAMETERS = frozenset({"parameters", "buffers", "named_parameters", "named_buffers", "state_dict"})


def parameters(name: str, tensor: Tensor) -> Value:
    """What ``module.parameters()`` and its kin return."""
    if name == "state_dict":
        return Mapping((), tensor)
    return Sequence(None, Sequence((UNKNOWN, tensor), UNKNOWN) if name.startswith("named_") else tensor)


def _register(frame: Frame, call: Call, module: Module) -> Value:
    name, value = call.argument(0, "name"), call.argument(1, "tensor") or call.argument(1, "param")
    known = name.value if isinstance(name, Const) and isinstance(name.value, str) else ANY
    registered = REGISTERED.of(frame.state.heap, module.oid) or ()
    REGISTERED.put(frame.state.heap, module.oid, (*registered, known))
    if isinstance(name, Const) and isinstance(name.value, str) and value is not None:
        held = value
        if isinstance(value, (Tensor, Opaque, Batches)):
            held = replace(
                as_tensor(value),
                certain=True,
                buffer=True,
                attribute=None,
                attribute_of=None,
                factory="",
                factory_node=None,
            )
            composition.exchange(frame, call.node.func, module, held)
        frame.state.heap[(module.oid, name.value)] = held
    return Const(None)


def _unwrapped(frame: Frame, call: Call, path: str) -> Value:
    """What returns a module as it is, compiled perhaps."""
    first = call.positional[0] if call.positional else UNKNOWN
    return first if isinstance(first, Module) else function(frame, call, path)


def _compiled(frame: Frame, call: Call, path: str) -> Value:
    first = call.positional[0] if call.positional else UNKNOWN
    return first if isinstance(first, (Module, Opaque, Batches)) else UNKNOWN


class _Module(ObjectModel):
    def called(self, frame: Frame, call: Call, value: Value) -> Value | None:
        return forward(frame, call, value) if isinstance(value, Module) else None

    def method(self, frame: Frame, call: Call, value: Value, node: ast.Attribute) -> Value | None:
        return method(frame, call, value, node) if isinstance(value, Module) else None


class _Tensor(tensor_methods.TensorModel):
    def called(self, frame: Frame, call: Call, value: Value) -> Value | None:
        """What was moved, and is called, is a module."""
        moved = isinstance(value, Tensor) and all(leaf.role is not Role.INPUT for leaf in value.device.leaves())
        if not isinstance(value, Tensor) or not moved or value.certain or not value.story:
            return None
        module = Module(identity(), text=frame.interpreter.text(call.node.func))
        frame.put(module, value.device, value.story[0])
        return forward(frame, call, module)


KINDS[Module] = _Module()
KINDS[Tensor] = _Tensor()
MODELS.register(dict.fromkeys((*torch_table.module_names(), *CONTAINERS), construct))
MODELS.register({"torch.compile": _compiled, "torch.jit.script": _unwrapped, "torch.compiler.disable": _unwrapped})
