"""What stays behind, or is read where it is not: each case is an event, and what a detector says after it."""

from __future__ import annotations

import ast

import pytest

from devlint.device import CPU, IMPLIED_CPU, Device, Role, symbol
from devlint.flow.catalog.schema import Row
from devlint.flow.core.interpreter import Frame
from devlint.flow.core.scope import scope_of
from devlint.flow.domain.objects import Module
from devlint.flow.domain.provenance import Origin
from devlint.flow.domain.state import State
from devlint.flow.domain.tensors import Tensor
from devlint.flow.domain.values import UNKNOWN, Sequence, Value
from devlint.flow.observers.costs.index_copies import IndexCopies
from devlint.flow.observers.costs.uploads import Uploads
from devlint.flow.observers.placement.constructor_tensors import ConstructorTensors
from devlint.flow.observers.placement.host_reads import HostReads
from devlint.flow.observers.placement.leaf_moves import LeafMoves
from devlint.flow.observers.placement.overridden_moves import OverriddenMoves
from devlint.flow.observers.placement.unregistered_modules import UnregisteredModules
from devlint.flow.observers.placement.unregistered_tensors import UnregisteredTensors
from devlint.sites.base import Operand, Step
from devlint.sites.devices import Override
from devlint.sites.placement import Attribute, HostRead, LeafMove
from devlint.sites.transfers import IndexCopy, Transfer, Upload
from tests.flow.observers.scene import CUDA, Scene, argument, emit

THERE = Tensor(CUDA, many=True)
PLOT = Row("pandas.Series", must_be_cpu=("*",))
WITH_INPUTS = Tensor(symbol("M:x", "x", Role.INPUT), many=True)


# -- reads on the host -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "receiver", "seen"),
    [
        ("x.numpy()", THERE, ["torch.Tensor.numpy"]),
        ("x.numpy(force=True)", THERE, []),
        ("x.numpy()", Tensor(CPU, many=True), []),
        ("x.numpy()", UNKNOWN, []),
        ("x.tolist()", THERE, []),
    ],
)
def test_a_tensor_becomes_an_array_on_the_host_alone(code: str, receiver: Value, seen: list[str]) -> None:
    scene = Scene(f"def f(x): return {code}", HostReads)
    frame = scene.frame(env={"x": receiver})
    call = scene.call(code, frame)
    emit("on_method", frame, call, receiver, call.node.func)
    assert [site.reader for site in scene.sites(HostRead)] == seen


@pytest.mark.parametrize(("row", "seen"), [(PLOT, [False]), (Row("pandas.Series"), []), (None, [])])
def test_another_library_takes_what_its_row_says(row: Row | None, seen: list[bool]) -> None:
    scene = Scene("def f(x): return Series(x)", HostReads)
    frame = scene.frame(env={"x": THERE})
    emit("on_unfollowed_call", frame, scene.call("Series(x)", frame), "pandas.Series", row)
    assert [site.several for site in scene.sites(HostRead)] == seen


def test_lengths_are_read_on_the_host() -> None:
    code = "torch.nn.utils.rnn.pack_padded_sequence(x, lengths)"
    scene = Scene(f"def f(x, lengths): return {code}", HostReads)
    frame = scene.frame(env={"x": THERE, "lengths": THERE})
    emit("on_library_call", frame, scene.call(code, frame), code.partition("(")[0])
    assert [(site.kind, site.beside) for site in scene.sites(HostRead)] == [("lengths", CUDA)]


# -- leaves ------------------------------------------------------------------------------------------------------------


def transfer(scene: Scene, frame: Frame, text: str, value: Tensor, target: Device | None) -> Transfer:
    call = scene.node(text, ast.Call)
    assert isinstance(call.func, ast.Attribute)
    operand = Operand(call.func.value, ast.unparse(call.func.value), value.device)
    return Transfer(call, scope_of(frame), call.func.attr, "tensor", operand, target)


@pytest.mark.parametrize(
    ("code", "grad", "place", "seen"),
    [
        ("w = w.to(device)\nreturn w.grad", "leaf", CUDA, [True]),
        ("w = w.to(device)\nreturn w.grad", "", CUDA, []),
        ("w = w.to(device)\nreturn w.grad", "leaf", IMPLIED_CPU, []),
        ("v = w.to(device)\nreturn v", "leaf", CUDA, []),
    ],
    ids=["its gradient is read", "it collects none", "it stays", "another name"],
)
def test_a_copy_takes_the_place_of_a_leaf(code: str, grad: str, place: Device, seen: list[bool]) -> None:
    body = code.replace("\n", "\n    ")
    scene = Scene(f"def f(w, device):\n    {body}", LeafMoves)
    leaf = Tensor(IMPLIED_CPU, many=True, grad=grad)
    frame = scene.frame(env={"w": leaf})
    move = transfer(scene, frame, "w.to(device)", leaf, place)
    emit("on_move", frame, move, leaf, scene.call("w.to(device)", frame))
    assert [site.gradient is not None for site in scene.sites(LeafMove)] == seen


# -- indexes and uploads -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "tensor", "seen"),
    [
        ("x[torch.arange(3)]", THERE, ["torch.arange"]),
        ("x[torch.arange(3)]", Tensor(CPU, many=True), []),
        ("x[torch.randperm(3)]", THERE, []),
        ("x[torch.arange(3, device=d)]", THERE, []),
    ],
)
def test_an_index_is_made_where_it_is_not_used(code: str, tensor: Tensor, seen: list[str]) -> None:
    scene = Scene(f"def f(x, d): return {code}", IndexCopies)
    frame = scene.frame(env={"x": tensor})
    node = scene.first(ast.Subscript)
    emit("on_index", frame, node, tensor, [(node.slice, scene.fresh(ast.unparse(node.slice)))])
    assert [site.creation.function for site in scene.sites(IndexCopy)] == seen


@pytest.mark.parametrize(
    ("code", "place", "step", "seen"),
    [
        ("torch.tensor([1.0], device=device)", CUDA, True, 1),
        ("torch.tensor([1.0], device=device)", CPU, True, 0),
        ("torch.tensor([1.0], device=device)", CUDA, False, 0),
        ("torch.tensor(batch, device=device)", CUDA, True, 0),
    ],
)
def test_each_step_uploads_the_same(code: str, place: Device, step: bool, seen: int) -> None:
    scene = Scene(f"def f(loader, device):\n    for batch in loader:\n        x = {code}", Uploads)
    frame = scene.frame(env={"device": argument("device", "device")}, loops=[scene.loop(step)])
    emit("on_placed_creation", frame, scene.call(code, frame), "torch.tensor", place)
    assert len(scene.sites(Upload)) == seen


# -- attributes of modules ---------------------------------------------------------------------------------------------

MODULE = """
class M(nn.Module):
    def __init__(self, mask: torch.Tensor):
        self.scale = torch.ones(3)
        self.layers = [nn.Linear(2, 2)]
        self.mask = mask

    def forward(self, x):
        return x * self.scale + self.mask

    def cuda(self):
        self.other = self.other.to("cuda")
        return super().cuda()
"""


def kept(scene: Scene, held: Tensor) -> tuple[Frame, Tensor]:
    """The frame of the constructor, and a tensor as it keeps it under ``scale``."""
    frame = scene.frame("__init__")
    assert frame.owner is not None
    node = scene.node("torch.ones(3)")
    step = Step(node, "kept here")
    origin = Origin(node=node, attribute=step, attribute_of=(frame.owner.key, "scale"))
    held = Tensor(held.device, many=held.many, origin=origin)
    owner = Module(frame.owner.oid, cls=frame.owner, text="self", has_state=True)
    emit("on_store", frame, scene.node("self.scale", ast.Attribute), owner, held, node)
    return frame, held


def uses(scene: Scene) -> list[tuple[str, int]]:
    return [(site.name, len(site.uses)) for site in scene.sites(Attribute)]


def test_a_plain_attribute_meets_what_is_where_the_module_is() -> None:
    scene = Scene(MODULE, UnregisteredTensors)
    _, scale = kept(scene, Tensor(IMPLIED_CPU, many=True))
    frame = scene.frame("forward")
    node = scene.node("x * self.scale", ast.BinOp)
    pair = (
        (node.left, WITH_INPUTS, "", WITH_INPUTS.device),
        (node.right, scale, "", scale.device),
    )
    assert uses(scene) == [], "it is only kept"
    emit("on_meet", frame, node, "*", list(pair), [pair])
    assert uses(scene) == [("scale", 1)]


def test_a_plain_attribute_goes_into_a_module() -> None:
    scene = Scene(MODULE, UnregisteredTensors)
    before, scale = kept(scene, Tensor(IMPLIED_CPU, many=True))
    node = scene.node("self.scale", ast.Attribute)
    emit("on_stray_inputs", before, [(node, scale, "")])
    assert uses(scene) == [], "while it is constructed, the module is where it is made"
    emit("on_stray_inputs", scene.frame("forward"), [(node, scale, ""), (node, THERE, "")])
    assert uses(scene) == [("scale", 1)]


def test_a_number_goes_anywhere() -> None:
    scene = Scene(MODULE, UnregisteredTensors)
    _, scale = kept(scene, Tensor(IMPLIED_CPU, many=False))
    node = scene.node("self.scale", ast.Attribute)
    emit("on_stray_inputs", scene.frame("forward"), [(node, scale, "")])
    assert uses(scene) == []


@pytest.mark.parametrize(
    ("held", "seen"),
    [(Module(7, text="nn.Linear", has_state=True), ["layers"]), (Module(7, text="nn.ReLU", has_state=False), [])],
)
def test_a_list_of_modules_registers_none(held: Module, seen: list[str]) -> None:
    scene = Scene(MODULE, UnregisteredModules)
    frame = scene.frame("__init__")
    assert frame.owner is not None
    owner = Module(frame.owner.oid, cls=frame.owner, text="self", has_state=True)
    node = scene.node("[nn.Linear(2, 2)]", ast.List)
    target = scene.node("self.layers", ast.Attribute)
    emit("on_store", frame, target, owner, Sequence((held,), UNKNOWN), node)
    assert [site.name for site in scene.sites(Attribute)] == seen


def test_what_is_put_into_an_empty_list_is_not_registered_either() -> None:
    scene = Scene(MODULE.replace("[nn.Linear(2, 2)]", "[]").replace("def cuda", "def put"), UnregisteredModules)
    frame = scene.frame("__init__")
    assert frame.owner is not None
    owner = Module(frame.owner.oid, cls=frame.owner, text="self", has_state=True)
    target, layer = scene.node("self.layers", ast.Attribute), Module(7, text="nn.Linear", has_state=True)
    emit("on_store", frame, target, owner, Sequence((), UNKNOWN), scene.node("[]", ast.List))
    assert scene.sites(Attribute) == []
    emit("on_put", frame, target, layer, None)
    assert [site.name for site in scene.sites(Attribute)] == ["layers"]
    scene.component(UnregisteredModules).settle(frame.owner, frame.owner.oid, State({}, {(7, "x"): UNKNOWN}))
    assert [site.name for site in scene.sites(Attribute)] == ["layers"]


def test_an_argument_that_is_kept_meets_another_one() -> None:
    assert [site.name for site in Scene(MODULE, ConstructorTensors).sites(Attribute)] == ["mask"]
    registered = MODULE.replace("self.mask = mask", 'self.register_buffer("mask", mask)')
    assert Scene(registered, ConstructorTensors).sites(Attribute) == []


def test_a_move_that_does_more_is_not_called_by_others() -> None:
    more = MODULE.replace("def cuda(self)", "def cuda(self, device)").replace('to("cuda")', "to(device)")
    assert [site.method for site in Scene(more, OverriddenMoves).sites(Override)] == ["cuda"]
    assert Scene(MODULE.replace("def cuda", "def put"), OverriddenMoves).sites(Override) == []
