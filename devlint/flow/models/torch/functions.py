"""Functions and classes of torch: factories, operations, loaders, devices, and calls that rules ask about."""

from __future__ import annotations

from collections.abc import Callable

from devlint import device
from devlint.flow.catalog import creation, torch_table
from devlint.flow.core.call import Call
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.values import (
    UNKNOWN,
    Batches,
    Const,
    DeviceValue,
    Flag,
    Instance,
    Module,
    Opaque,
    Sequence,
    Stateful,
    Tensor,
    Value,
    as_tensor,
    named_place,
    surely_tensor,
)
from devlint.flow.models.data import samplers
from devlint.flow.models.data.loaders import Loaders
from devlint.flow.models.nn import modules, parallel, process_groups
from devlint.flow.models.nn.process_groups import Groups
from devlint.flow.models.torch import autograd, distributions, factories, rng, tensor_methods
from devlint.flow.models.torch.optim import Optimizers
from devlint.flow.observers.costs import device_queue, host_syncs
from devlint.flow.observers.costs.device_queue import Queue
from devlint.flow.observers.placement import host_reads
from devlint.flow.observers.portability import device_literals, device_misuse
from devlint.flow.observers.portability.gpu_selection import Choosing
from devlint.flow.transfer import memory, placement
from devlint.flow.transfer.escapes import Escapes
from devlint.flow.transfer.placement import blend, is_tensor, meet
from devlint.immutable import replace
from devlint.sites.base import Step
from devlint.sites.devices import ApiCall

_TAKES_NUMBERS = frozenset({"pow", "where", "isin", "result_type", "float_power", "xlogy"})
"""Operations whose tensors may all be numbers."""
_MAY_BE_NUMBERS = frozenset({"other", "exponent", "repeats", "value", "min", "max", "start", "end", "weight"})
"""Parameters which take a number (or nothing) as well as a tensor."""
_LOADER = "torch.utils.data.DataLoader"
_API = frozenset({"torch.load", "torch.hub.load_state_dict_from_url", "torch.utils.model_zoo.load_url"})
FLUSHES = frozenset(
    {f"torch.{backend}.empty_cache" for backend in ("cuda", "xpu", "mps", "accelerator")} | {"gc.collect"}
)
"""Functions that give memory back."""


def torch_function(frame: Frame, call: Call, path: str) -> Value:
    """The result of calling ``path``, a canonical name below ``torch``."""
    handler = distributions.function if path.startswith(distributions.ROOT) else _SPECIAL.get(path)
    if handler is not None:
        return handler(frame, call, path)
    device_literals.literal_devices(frame, call, path)
    listener = _LISTENERS.get(path)
    if listener is not None:
        listener(frame, call, path)
    if path in _API:
        return _api(frame, call, path)
    if path == _LOADER:
        return frame.component(Loaders).make(frame, call, path)
    if torch_table.module(path) is not None or path in parallel.WRAPPERS or path in modules.CONTAINERS:
        return modules.construct(frame, call, path)
    entry = torch_table.function(path)
    if entry is not None:
        return _worked(frame, call, path, entry, _tabled(frame, call, path, entry))
    if path.rpartition(".")[2] in device_queue.BLOCKING:
        frame.component(Queue).wait(frame, call.node)
    if creation.is_legacy(path):
        device_misuse.note_legacy(frame, call)
        return factories.make(frame, call, path, None)
    if path.startswith("torch.cuda.") and path.endswith("Tensor"):
        return Tensor(device.accelerator("cuda"), many=True, story=(Step(call.node, "created on `cuda` here"),))
    if path.startswith("torch.optim."):
        return frame.component(Optimizers).make(frame, call, path)
    if path.startswith(("torch.nn.utils.", "torch.utils.data.")):
        frame.component(Escapes).data(call.values())
    device_misuse.note_module_call(frame, call, path)
    return UNKNOWN


_SIZED = {"torch.nn.functional.one_hot": "num_classes"}
"""Functions that wait only to learn how large their result is, each with the argument that tells."""


def _worked(frame: Frame, call: Call, path: str, entry: torch_table.Function, result: Value) -> Value:
    """The result of a function of torch, which the device where it lives has to compute."""
    place = as_tensor(result).device
    first = call.argument(0, "input")
    node = call.argument_node(0, "input")
    if "generator" in call.keywords:
        filled = (call.node, result) if node is None or first is None or not surely_tensor(first) else (node, first)
        result = rng.numbers(frame, call, path, filled, result)
    sized = path in _SIZED and call.argument(1, _SIZED[path]) is not None
    if entry.sync == "always" and not sized and first is not None and node is not None:
        host_syncs.wait(frame, call.node, node, first, path.rpartition(".")[2])
    elif entry.rule == "same_as_input" and place.known:
        frame.component(Queue).work(frame, call.node, place)
    return result


def _tabled(frame: Frame, call: Call, path: str, entry: torch_table.Function) -> Value:
    name = path.rpartition(".")[2]
    if entry.rule in ("default_or_kwarg", "like_input_or_kwarg", "data_or_default", "arg_tensor_or_cpu", "cpu"):
        return factories.make(frame, call, path, entry)
    if entry.rule in ("python", "numpy", "none"):
        return UNKNOWN
    operands = tensor_methods.arguments(call, entry)
    if entry.must_be_cpu:
        host_reads.lengths(frame, call, path, entry)
    if name not in _TAKES_NUMBERS:
        proofs = entry.rejects_cpu - _MAY_BE_NUMBERS
        operands = [(node, _proven(value) if role in proofs else value, role) for node, value, role in operands]
    clash = False
    if name != "ctc_loss":
        # ctc_loss moves its targets and lengths itself
        met = tensor_methods.checked([met for met in operands if tensor_methods.matters(frame, met, entry)], entry)
        clash = meet(frame, call.node, path, _kind(path, name), met)
    definite = tensor_methods.deciding(operands, entry)
    if not definite:
        # what goes first into an operation of torch is a tensor
        first = entry.parameter_at(0) or ""
        definite = [
            value
            for _, value, role in operands[:1]
            if isinstance(value, Opaque) and role == first and name not in _TAKES_NUMBERS
        ]
    if not definite:
        return UNKNOWN
    made = memory.separate(blend(*definite), path)
    result = placement.stranded(made) if clash else placement.tied(made, call)
    if path.startswith("torch.nn.utils.rnn.pad_packed"):
        return Sequence((result, Tensor(device.CPU, many=True)), UNKNOWN)
    if name.endswith("_loss") or name in (
        "cross_entropy",
        "binary_cross_entropy",
        "binary_cross_entropy_with_logits",
        "kl_div",
    ):
        return replace(
            result, many=None if "reduction" in call.keywords else False, rank=None, factory="", factory_node=None
        )
    shifted = replace(call, positional=call.positional[1:], nodes=call.nodes[1:]) if call.positional else call
    if name in ("cat", "stack", "concat", "hstack", "vstack", "concatenate"):
        rank = as_tensor(definite[0]).rank
        same = rank is not None and all(as_tensor(value).rank == rank for value in definite)
        grown = {"stack": 1, "cat": 0, "concat": 0}.get(name)
        return replace(
            result, many=True, rank=rank + grown if same and rank is not None and grown is not None else None
        )
    if name == "matmul" or name in _BROADCASTING:
        return _combined(name, result, [as_tensor(value) for _, value, _ in operands])
    return tensor_methods.shaped(shifted, name, result, as_tensor(definite[0]))


def _combined(name: str, result: Tensor, operands: list[Tensor]) -> Tensor:
    """The result of a function of several tensors, with its number of dimensions where theirs are known."""
    if name == "matmul":
        return placement.ranked("@", result, operands)
    ranks = [tensor.rank for tensor in operands]
    sure = [rank for rank in ranks if rank is not None]
    return replace(result, rank=max(sure) if len(sure) == len(ranks) else None, certain=True)


_BROADCASTING = frozenset("add sub mul div maximum minimum where fmod remainder eq ne lt le gt ge".split())
"""Functions of several tensors, whose results have as many dimensions as the one that has most."""


def _proven(value: Value) -> Value:
    """An argument that torch takes only as a tensor is one."""
    return replace(value, hint="tensor") if isinstance(value, Opaque) and not value.hint else value


def _kind(path: str, name: str) -> str:
    if name.endswith("_loss") or "cross_entropy" in name or name in ("kl_div", "huber_loss", "nll_loss"):
        return "loss target"
    return "operands"


def _api(frame: Frame, call: Call, path: str) -> Value:
    if path == "torch.load" and "map_location" not in call.keywords and len(call.nodes) > 1:
        device_literals.literal(frame, call.nodes[1], "map_location")
    frame.emit(
        ApiCall(
            call.node,
            scope_of(frame),
            path,
            dict(call.keyword_nodes),
            len(call.positional),
            call.open or call.starred,
            _purpose(frame, call),
        )
    )
    return UNKNOWN


def flush(frame: Frame, call: Call, path: str) -> Value:
    """A call that gives memory back."""
    frame.emit(ApiCall(call.node, scope_of(frame), path, dict(call.keyword_nodes), len(call.positional), call.open))
    return UNKNOWN


def _purpose(frame: Frame, call: Call) -> str:
    """What a loaded object is for: known where it goes into ``load_state_dict``, or where a data set reads it."""
    owner = frame.owner
    if owner is not None and owner.is_dataset:
        return "dataset"
    foreign = owner is not None and not owner.is_module and "load_state_dict" in owner.methods
    return "state dict" if frame.interpreter.lookups.of(frame.info, frame.inside).restores(call.node, foreign) else ""


# -- what the table does not know --------------------------------------------------------------------------------------


def _device(frame: Frame, call: Call, path: str) -> Value:
    given = call.argument(0, "device") or call.argument(0, "type")
    node = call.argument_node(0, "device") or call.argument_node(0, "type")
    if given is None or node is None:
        return UNKNOWN
    device_misuse.note_argument(frame, call, node, given, "torch.device")
    frame.component(Choosing).wrap(call)
    frame.component(Choosing).use(frame, given, call.node)
    index = call.argument(1, "index")
    computed = index is not None and not isinstance(index, Const)
    if text := device_literals.literal(frame, node, "rank" if computed else "torch.device"):
        place = device.parse(text)
        if place is not None and index is not None:
            number = index.value if isinstance(index, Const) and isinstance(index.value, int) else None
            if number is None:
                frame.component(Groups).ranked(frame, call.node, index)
                return DeviceValue(
                    device.symbol(f"{text}@{frame.at(call.node)}", frame.interpreter.text(call.node)),
                    call.node,
                    origin="made",
                )
            frame.component(Choosing).number(frame, call.node, number, f'torch.device("{text}", {number})')
            place = device.accelerator(place.type, number)
        return DeviceValue(place or device.UNKNOWN, call.node, origin="made")
    place = named_place(given)
    if place is None:
        place = device.symbol(f"device@{frame.at(call.node)}", frame.interpreter.text(call.node))
    return DeviceValue(place, call.node, origin="made")


def _set_default(frame: Frame, call: Call, path: str) -> Value:
    node = call.argument_node(0, "device")
    if node is not None:
        device_literals.literal(frame, node, "set_default_device")
        device_misuse.note_argument(frame, call, node, call.argument(0, "device"), "set_default_device")
        given = call.argument(0, "device")
        reset = given is None or (isinstance(given, Const) and given.value is None)
        rng.default(frame, call, device.CPU if reset or given is None else named_place(given) or device.UNKNOWN)
    return UNKNOWN


def _set_default_type(frame: Frame, call: Call, path: str) -> Value:
    rng.default_type(frame, call)
    return UNKNOWN


def _autocast(frame: Frame, call: Call, path: str) -> Value:
    node = call.argument_node(0, "device_type")
    if node is not None:
        enabled = call.keywords.get("enabled")
        off = isinstance(enabled, Const) and enabled.value is False
        device_literals.literal(frame, node, "autocast off" if off else "autocast")
        device_misuse.note_argument(frame, call, node, call.argument(0, "device_type"), "autocast")
    return UNKNOWN


def _generator(frame: Frame, call: Call, path: str) -> Value:
    node = call.argument_node(0, "device")
    if node is not None:
        device_literals.literal(frame, node, "device")
        device_misuse.note_argument(frame, call, node, call.argument(0, "device"), "device")
    return rng.made(frame, call)


def _parameter(frame: Frame, call: Call, path: str) -> Value:
    data = call.argument(0, "data")
    tensor = as_tensor(data) if data is not None else Tensor(device.IMPLIED_CPU, many=True)
    return replace(
        tensor,
        many=tensor.many if tensor.many is not None else None,
        certain=True,
        buffer=True,
        factory="",
        factory_node=None,
        grad="parameter",
    )


def _tensor_dataset(frame: Frame, call: Call, path: str) -> Value:
    return Stateful(path, tuple(as_tensor(value) for value in call.positional))


def _subset(frame: Frame, call: Call, path: str) -> Value:
    listener = _LISTENERS.get(path)
    if listener is not None:
        listener(frame, call, path)
    first = call.positional[0] if call.positional else UNKNOWN
    if not isinstance(first, (Stateful, Instance)):
        return UNKNOWN
    return Sequence(None, first) if path.endswith("random_split") else first


def _available(frame: Frame, call: Call, path: str) -> Value:
    flag = frame.interpreter.condition(frame, call.node)
    return flag if isinstance(flag, Flag) else UNKNOWN


def _accelerator(frame: Frame, call: Call, path: str) -> Value:
    frame.component(Choosing).current(frame, call)
    return DeviceValue(device.symbol("current accelerator", frame.interpreter.text(call.node)), call.node)


def _cuda_scope(frame: Frame, call: Call, path: str) -> Value:
    return Stateful(path, node=call.node)


def _mask(frame: Frame, call: Call, path: str) -> Value:
    made = factories.make(frame, call, path, torch_table.function("torch.zeros"))
    return replace(made, many=True, rank=2)


def _variable(frame: Frame, call: Call, path: str) -> Value:
    return call.positional[0] if call.positional else UNKNOWN


def _gradients(frame: Frame, call: Call, path: str) -> Value:
    """A tuple with a gradient for each input, where that is."""
    node, outputs = call.argument_node(0, "outputs"), call.argument(0, "outputs")
    if node is not None and outputs is not None:
        autograd.handed(frame, call, path, (node, outputs), 2, "grad_outputs")
    inputs = call.argument(1, "inputs")
    several = inputs.items if isinstance(inputs, Sequence) else (inputs or UNKNOWN,)
    if not several or "allow_unused" in call.keywords or "materialize_grads" in call.keywords:
        return UNKNOWN  # which of them there are is not known
    return Sequence(tuple(blend(value) if is_tensor(value) else UNKNOWN for value in several), UNKNOWN)


def _compiled(frame: Frame, call: Call, path: str) -> Value:
    first = call.positional[0] if call.positional else UNKNOWN
    return first if isinstance(first, (Module, Opaque, Batches)) else UNKNOWN


def _sampler(frame: Frame, call: Call, path: str) -> Value:
    rng.note(frame, call, path)
    return frame.component(Loaders).sharing.sampler(call, path)


def _note_group(frame: Frame, call: Call, path: str) -> None:
    frame.component(Groups).note(frame, call, path)


_LISTENERS: dict[str, Callable[[Frame, Call, str], None]] = {
    **dict.fromkeys(rng.DRAWERS, rng.note),
    **dict.fromkeys(process_groups.CALLS, _note_group),
}
"""What is interested in a call besides whoever knows its result."""
_SPECIAL: dict[str, Callable[[Frame, Call, str], Value]] = {
    "torch.device": _device,
    "torch.set_default_device": _set_default,
    "torch.set_default_tensor_type": _set_default_type,
    "torch.amp.autocast": _autocast,
    "torch.Generator": _generator,
    "torch.manual_seed": rng.seeded,
    "torch.nn.Parameter": _parameter,
    "torch.nn.Buffer": _parameter,
    "torch.autograd.Variable": _variable,
    "torch.autograd.grad": _gradients,
    "torch.utils.data.TensorDataset": _tensor_dataset,
    "torch.utils.data.Subset": _subset,
    samplers.SAMPLER: _sampler,
    "torch.utils.data.random_split": _subset,
    "torch.cuda.is_available": _available,
    "torch.cuda.device_count": _available,
    "torch.accelerator.is_available": _available,
    "torch.accelerator.current_accelerator": _accelerator,
    "torch.cuda.device": _cuda_scope,
    "torch.nn.Transformer.generate_square_subsequent_mask": _mask,
    "torch.compile": _compiled,
}
