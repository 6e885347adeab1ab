"""Code that makes samples and batches, in whatever process the loader runs, and the order in which they are drawn."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from devlint import device
from devlint.device import Device, Kind, Role
from devlint.flow.catalog.concepts import DISTRIBUTED_SAMPLER
from devlint.flow.core.call import Call
from devlint.flow.core.events import Observer
from devlint.flow.core.interpreter import Frame, Interpreter
from devlint.flow.core.registry import MODELS
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.heap import ARGUMENTS
from devlint.flow.domain.objects import Function, Instance, Stateful
from devlint.flow.domain.tensors import DeviceValue, Tensor, as_tensor, placement
from devlint.flow.domain.values import UNKNOWN, Const, Mapping, Sequence, Unknown, Value, is_literal, is_none
from devlint.flow.program.symbols import ClassInfo
from devlint.flow.syntax import names, nodes
from devlint.flow.transfer.defaults import generator_place, held
from devlint.flow.transfer.escapes import Escapes
from devlint.immutable import immutable
from devlint.sites.base import Scope, Step
from devlint.sites.loaders import Draw, SampleWork, Worker
from devlint.sites.transfers import Transfer

_METHODS = ("__getitem__", "__getitems__")
_TRANSFORMS = frozenset({"transform", "target_transform", "transforms", "pre_transform", "batch_transform"})
_HOOKS = ("collate_fn", "worker_init_fn")
_SPAWNS = r"""set_start_method\(\s*(?:method\s*=\s*)?["'](?:spawn|forkserver)["']"""


@immutable(frozen=True, slots=True)
class _Placed:
    """Something was put on a device, in a function (the innermost of ``inside``)."""

    node: ast.AST
    scope: Scope
    place: Device
    inside: tuple[ast.AST, ...]


@immutable(frozen=True, slots=True)
class _Maker:
    """A loader, and what it uses to make its batches."""

    loader: Worker
    functions: tuple[tuple[ast.AST, str], ...]
    given: tuple[Value, ...] | None
    """What the data set was made of, where it is of a class of the file."""


class SampleCode(Observer):
    """The code of a file that makes samples and batches, and the loaders that run it."""

    wants_inlined = True
    wants_quiet = True

    def __init__(self, interpreter: Interpreter) -> None:
        self._index = interpreter.index
        self._text = interpreter.own_text
        self._wanted = "Dataset" in interpreter.own_text or "DataLoader" in interpreter.own_text
        self._placed: dict[ast.AST, _Placed] = {}
        self._makers: dict[tuple[object, ...], _Maker] = {}
        self._transforms: set[ast.AST] = set()
        self._returned: dict[ast.AST, dict[ast.AST, Device | None]] = {}

    def placed(self, frame: Frame, node: ast.AST, place: Device | None) -> None:
        """Something is put on ``place``, which may be an accelerator."""
        if not self._wanted or frame.interpreter.muted or place is None or place.accelerates() is False:
            return
        inside: list[ast.AST] = []
        outer: Frame | None = frame
        while outer is not None:
            code = outer.body or (outer.info.node if outer.info else None)
            if code is not None:
                inside.append(code)
            outer = outer.caller
        if inside:
            self._placed.setdefault(node, _Placed(node, scope_of(frame), place, tuple(inside)))

    def on_move(self, frame: Frame, transfer: Transfer, receiver: Value, call: Call) -> None:
        """Something is moved, perhaps to an accelerator."""
        self.placed(frame, transfer.node, transfer.target)

    def on_return(self, frame: Frame, node: ast.Return, value: Value) -> None:
        """A function returns something, perhaps a sample or a batch."""
        if self._wanted and frame.info is not None and not frame.inlined:
            self._returned.setdefault(frame.info.node, {})[node] = _placed_in(value)

    def put(self, loader: ast.AST, collates: bool) -> tuple[Device, Step] | None:
        """Where the code of the file puts all batches of a loader, and the place where it returns them.

        ``collates`` says that the loader was given a function that makes batches of samples.
        """
        found: tuple[Device, Step] | None = None
        for maker in self._makers.values():
            if maker.loader.node is not loader:
                continue
            roles = ("collate_fn",) if collates else _METHODS
            returned = [self._returned.get(code, {None: None}) for code, role in maker.functions if role in roles]
            places = [(place, node) for made in returned for node, place in made.items()]
            if not places or not all(_stays(place, maker) for place, _ in places):
                return None
            place, node = places[0]
            if place is not None and node is not None:
                found = (place, Step(node, f"what is on {place} is returned here"))
        return found

    def transforms(self, call: Call, path: str = "") -> None:
        """Functions among the arguments that a data set applies to its samples."""
        given = [(name, value) for name, value in call.keywords.items() if name in _TRANSFORMS]
        for name, value in given:
            self._transform(value, call.keyword_nodes.get(name))
        if path.endswith("transforms.Lambda") and call.positional:
            self._transform(call.positional[0], call.nodes[0])

    def _transform(self, value: Value, node: ast.AST | None) -> None:
        code = _code(value, node)
        if code is not None:
            self._transforms.add(code)
        items = value.items if isinstance(value, Sequence) else None
        for item in items or ():
            self._transform(item, None)

    def loader(self, frame: Frame, call: Call, workers: int | None) -> None:
        """A loader uses these functions to make its batches."""
        functions = [
            (code, name)
            for name in _HOOKS
            if (code := _code(call.keywords.get(name), call.keyword_nodes.get(name))) is not None
        ]
        dataset = call.argument(0, "dataset")
        given = None
        if isinstance(dataset, Instance):
            functions += [(method.node, name) for name in _METHODS if (method := dataset.cls.method(name))]
            if _streams(dataset.cls) and (method := dataset.cls.method("__iter__")):
                functions.append((method.node, "__iter__"))
            given = ARGUMENTS.of(frame.state.heap, dataset.oid)
        loader = Worker(call.node, workers, self._context(call), call.open or call.starred)
        # a function that makes loaders makes one of each data set that it is called with
        self._makers.setdefault((call.node, *functions), _Maker(loader, tuple(functions), given))

    def _context(self, call: Call) -> str:
        """How the workers start: "fork" unless said otherwise, empty where that cannot be told."""
        if "multiprocessing_context" not in call.keyword_nodes:
            return "spawn" if re.search(_SPAWNS, self._text) else "fork"
        node = call.keyword_nodes["multiprocessing_context"]
        named = [
            part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str)
        ]
        return named[0] if len(named) == 1 else ""

    def sites(self) -> Iterator[SampleWork]:
        """A site for each placement in code that makes samples."""
        if not self._placed:
            return
        roles: dict[ast.AST, tuple[str, list[_Maker]]] = {}
        for info in self._index.classes.values():
            names = (*_METHODS, "__iter__") if _streams(info) else _METHODS
            for name in names if info.is_dataset else ():
                method = info.methods.get(name)
                if method is not None:
                    roles[method.node] = (name, [])
        roles.update({code: ("transform", []) for code in self._transforms})
        for maker in self._makers.values():
            for code, name in maker.functions:
                roles.setdefault(code, (name, []))[1].append(maker)
        for placed in self._placed.values():
            found = next((roles[code] for code in placed.inside if code in roles), None)
            if found is None:
                continue
            role, makers = found
            able = [maker for maker in makers if _can(placed.place, maker)]
            if able or not makers:
                yield SampleWork(placed.node, placed.scope, role, placed.place, tuple(maker.loader for maker in able))


def _placed_in(value: Value) -> Device | None:
    """Where a tensor is that was put somewhere, or the first such item of a tuple, list or dict."""
    if isinstance(value, Tensor):
        return value.device if value.certain and value.device.accelerates() is not False else None
    if isinstance(value, Mapping):
        return next(filter(None, (_placed_in(held) for _, held in value.items)), None)
    items = value.items if isinstance(value, Sequence) else None
    return next(filter(None, map(_placed_in, items or ())), None)


def _stays(place: Device | None, maker: _Maker) -> bool:
    """Whether something is put on a device that the code chooses, and that this loader's data set was given."""
    if place is None or not _can(place, maker):
        return False
    return place.accelerates() is True or place.switched or (place.kind is Kind.SYMBOL and place.role is Role.DEVICE)


def _can(place: Device, maker: _Maker) -> bool:
    """Whether the data set of this loader was given a device at all, where the code puts things on one it was given."""
    own = place.kind is Kind.SYMBOL and ".__init__:" in place.symbol
    if not own or maker.given is None:
        return True
    places = [given for value in maker.given if (given := placement(value)) is not None]
    return any(given.accelerates() is not False for given in places)


def _code(value: Value | None, node: ast.AST | None) -> ast.AST | None:
    """The definition behind a function that is passed on."""
    if isinstance(value, Function):
        return value.info.node
    if isinstance(value, Instance):
        method = value.cls.method("__call__")
        return method.node if method is not None else None
    return node if isinstance(node, ast.Lambda) else None


def _streams(info: ClassInfo) -> bool:
    return any("IterableDataset" in root.rpartition(".")[2] for root in info.roots())


def in_memory(dataset: Value | None) -> bool:
    """Whether the samples of a data set are at hand: tensors, a list, or a class that only picks what it holds."""
    if isinstance(dataset, Sequence) or (isinstance(dataset, Stateful) and bool(dataset.tensors)):
        return True
    if not isinstance(dataset, Instance):
        return isinstance(dataset, Const)
    method = dataset.cls.method("__getitem__")
    return method is not None and not any(isinstance(node, ast.Call) for node in method.nodes)


def _tensor_dataset(frame: Frame, call: Call, path: str) -> Value:
    return Stateful(path, tuple(as_tensor(value) for value in call.positional))


def _subset(frame: Frame, call: Call, path: str) -> Value:
    first = call.first
    return first if isinstance(first, (Stateful, Instance)) else UNKNOWN


def _split(frame: Frame, call: Call, path: str) -> Value:
    note_draw(frame, call, path)
    first = _subset(frame, call, path)
    return first if isinstance(first, Unknown) else Sequence(None, first)


def hands_on(info: ClassInfo) -> bool:
    """Whether the samples of a data set of the project are items of what its constructor is given, wherever that is."""
    init, sample = info.method("__init__"), info.method("__getitem__")
    if init is None or sample is None:
        return False
    parameters = {parameter.arg for parameter in init.parameters} - {"self"}
    kept = {
        names.dotted(target)
        for node in init.own
        if isinstance(node, ast.Assign)
        and not isinstance(node.value, ast.Call)
        and names.root(node.value) in parameters
        for target in node.targets
    }
    calls = [node for node in sample.own if isinstance(node, ast.Call)]
    # what a function makes of an item, such as a tensor of the file that it names, is another thing
    made_of = {id(part) for call in calls for given in nodes.given(call) for part in nodes.walk(given)}
    items = (node for node in sample.own if isinstance(node, ast.Subscript) and id(node) not in made_of)
    return any(names.dotted(item.value) in kept for item in items)


LOADER = "torch.utils.data.DataLoader"
_OWN = frozenset({"torch.utils.data.random_split", "torch.utils.data.RandomSampler", DISTRIBUTED_SAMPLER, LOADER})
"""What draws with a generator of the CPU where none is given."""
_SAMPLERS = frozenset({"torch.utils.data.RandomSampler", "torch.utils.data.SubsetRandomSampler"})


def note_draw(frame: Frame, call: Call, path: str) -> None:
    """Record a call that draws, where it is known with what."""
    if call.open or call.starred:
        return
    given = call.keywords.get("generator")
    if given is None or is_none(given):
        if path in _OWN and _draws(call, path):
            _emit(frame, call, path, device.CPU)
    elif (place := generator_place(given)) is not None:
        _emit(frame, call, path, place)


def _emit(frame: Frame, call: Call, path: str, place: Device) -> None:
    default = held(frame)
    where, step = device.CPU, None
    if isinstance(default, DeviceValue):
        where = default.device
        step = Step(default.node, "the default device is set here") if default.node is not None else None
    elif frame.interpreter.default_changed:
        return
    node = call.keyword_nodes.get("generator")
    frame.emit(Draw(call.node, scope_of(frame), path, node, place, where, step))


def _draws(call: Call, path: str) -> bool:
    """Whether a call without a generator of its own draws at all."""
    shuffle = call.keywords.get("shuffle")
    if path == DISTRIBUTED_SAMPLER:
        return shuffle is None
    if path != LOADER:
        return True
    chosen = {"sampler", "batch_sampler"} & set(call.keywords) or len(call.positional) > 2
    return is_literal(shuffle, True) and not chosen


def _sampler(frame: Frame, call: Call, path: str) -> Value:
    note_draw(frame, call, path)
    frame.component(Escapes).data(call.values())
    return UNKNOWN


MODELS.register(
    {
        **dict.fromkeys(_SAMPLERS, _sampler),
        "torch.utils.data.TensorDataset": _tensor_dataset,
        "torch.utils.data.Subset": _subset,
        "torch.utils.data.random_split": _split,
    }
)
