"""Hints: tensors that will meet only later.  Each case is an event, and the operations that are suspected after it."""

from __future__ import annotations

import ast
from collections.abc import Callable

import pytest

from devlint.device import CPU, IMPLIED_CPU, UNKNOWN, accelerator, choice
from devlint.flow.catalog.schema import Row
from devlint.flow.core.events import Meeting
from devlint.flow.core.interpreter import Frame
from devlint.flow.domain.heap import ORIGIN
from devlint.flow.domain.objects import Module
from devlint.flow.domain.provenance import Origin
from devlint.flow.domain.state import State
from devlint.flow.domain.tensors import Tensor
from devlint.flow.domain.values import UNKNOWN as NOTHING
from devlint.flow.domain.values import Flag, Opaque, Sequence, Value
from devlint.flow.observers.hints.collectives import Collectives
from devlint.flow.observers.hints.mixed_operands import MixedOperands
from devlint.flow.observers.hints.opposite_moves import OppositeMoves
from devlint.flow.observers.hints.same_shape import SameShape
from devlint.flow.observers.hints.unmoved_inputs import MovesOfOnePath, UnmovedInputs
from devlint.sites.base import Act, Step
from devlint.sites.placement import Hint, HintKind
from tests.flow.observers.scene import CHOSEN, CUDA, Scene, argument, emit, given, moved

BRANCH = """
def f(x, y: torch.Tensor, flag):
    if flag:
        x = torch.zeros(3)
    return x + y
"""
MODULE = """
class M(nn.Module):
    def forward(self, x, y):
        z = x if isinstance(y, np.ndarray) else torch.zeros(3)
        return torch.zeros(x.shape) + self.mask
"""


def told(scene: Scene) -> list[tuple[HintKind, list[str]]]:
    """The kinds of the hints that are told, with what they are about."""
    return [(site.kind, [site.stray.text, site.beside.text]) for site in scene.sites(Hint)]


def meet_paths(scene: Scene, frame: Frame, then: dict[str, Value], other: dict[str, Value]) -> None:
    env = frame.state.env
    emit("on_branch", frame, scene.first(ast.If), State(dict(env)), State({**env, **then}), State({**env, **other}))


# -- alternatives --------------------------------------------------------------------------------------------------


def test_one_path_makes_what_the_caller_gives_on_the_other() -> None:
    scene = Scene(BRANCH, MixedOperands)
    frame = scene.frame(env={"x": argument("x"), "y": argument("y")})
    meet_paths(scene, frame, {"x": scene.fresh("torch.zeros(3)")}, {})
    assert told(scene) == [(HintKind.ALTERNATIVE, ["torch.zeros(3)", "x"])]


ALIKE: dict[str, Callable[[Scene], tuple[Value, Value]]] = {
    "both are made here": lambda scene: (scene.fresh("torch.zeros(3)"), scene.fresh("torch.zeros(3)")),
    "made where it is asked for": lambda scene: (moved(scene.tree), argument("x")),
    "a number": lambda scene: (scene.fresh("torch.zeros(3)"), argument("x", "number")),
    "a part of an argument": lambda scene: (
        scene.fresh("torch.zeros(3)"),
        Opaque("f:x.y", "x.y", "tensor", argument("x").role),
    ),
    "moved on the other path": lambda scene: (scene.fresh("torch.zeros(3)"), moved(scene.tree)),
}


@pytest.mark.parametrize("values", ALIKE.values(), ids=ALIKE)
def test_paths_that_do_not_differ(values: Callable[[Scene], tuple[Value, Value]]) -> None:
    scene = Scene(BRANCH, MixedOperands)
    then, other = values(scene)
    meet_paths(scene, scene.frame(env={"x": argument("x"), "y": argument("y")}), {"x": then}, {"x": other})
    assert not told(scene)


def test_an_alternative_that_is_moved_further_down() -> None:
    scene = Scene(BRANCH.replace("return x + y", "return x.to(y.device) + y"), MixedOperands)
    meet_paths(scene, scene.frame(env={"x": argument("x")}), {"x": scene.fresh("torch.zeros(3)")}, {})
    assert not told(scene)


@pytest.mark.parametrize("dead", ["then", "other"])
def test_a_path_that_ends_meets_nothing(dead: str) -> None:
    scene = Scene(BRANCH, MixedOperands, OppositeMoves, MovesOfOnePath)
    env: dict[str, Value] = {"x": argument("x"), "y": argument("y")}
    sides = {"then": State({**env, "x": scene.fresh("torch.zeros(3)")}), "other": State(dict(env))}
    sides[dead].dead = True
    emit("on_branch", scene.frame(env=env), scene.first(ast.If), State(env), sides["then"], sides["other"])
    assert not told(scene)


def test_the_two_values_of_an_expression() -> None:
    scene = Scene(MODULE, MixedOperands)
    frame = scene.frame("forward", {"x": argument("x")})
    node = scene.first(ast.IfExp)
    emit("on_choice", frame, node, Flag("c"), argument("x"), scene.fresh("torch.zeros(3)"))
    assert told(scene) == [(HintKind.ALTERNATIVE, ["torch.zeros(3)", "x"])]


def test_an_item_of_a_list_of_new_tensors() -> None:
    scene = Scene("def f(y: torch.Tensor, x):\n    xs = [torch.zeros(3)]\n    xs[0] = x\n", MixedOperands)
    made = scene.fresh("torch.zeros(3)")
    frame = scene.frame(env={"x": argument("x"), "y": argument("y")})
    target = scene.node("xs[0]", ast.Subscript)
    emit("on_item", frame, target, Sequence((made,), made), NOTHING, argument("x"))
    emit("on_item", frame, target, Sequence((argument("x"),), argument("x")), NOTHING, argument("x"))
    assert told(scene) == [(HintKind.ALTERNATIVE, ["torch.zeros(3)", "xs[0]"])]


# -- what goes into one call, or one row ---------------------------------------------------------------------------

CALL = """
def f(x: torch.Tensor, network):
    if x.is_cuda: pass
    network.parameters()
    torch.distributed.all_reduce(torch.zeros(3))
    return kornia.blur(x, torch.ones(3)), helper(network, torch.ones(3))
"""


def test_a_library_gets_a_new_tensor_and_one_of_the_caller() -> None:
    scene = Scene(CALL, MixedOperands)
    scene.values["torch.ones(3)"] = scene.fresh("torch.ones(3)")
    frame = scene.frame(env={"x": given("x")})
    call = scene.call("kornia.blur(x, torch.ones(3))", frame)
    row = Row("kornia.blur", rejects_cpu=frozenset("*"))
    for path, stated in (("kornia.blur", row), ("kornia.Blur", row), ("skimage.blur", None)):
        emit("on_unfollowed_call", frame, call, path, stated)
    assert told(scene) == [(HintKind.TOGETHER, ["torch.ones(3)", "x"])]


def test_a_function_gets_a_new_tensor_and_a_network() -> None:
    scene = Scene(CALL, MixedOperands)
    scene.values["torch.ones(3)"] = scene.fresh("torch.ones(3)")
    frame = scene.frame(env={"network": argument("network", "")})
    emit("on_unfollowed_call", frame, scene.call("helper(network, torch.ones(3))", frame), "project.helper", None)
    assert told(scene) == [(HintKind.TOGETHER, ["torch.ones(3)", "network"])]


def test_a_collective_gets_a_new_tensor() -> None:
    scene = Scene(CALL, Collectives)
    scene.values["torch.zeros(3)"] = scene.fresh("torch.zeros(3)")
    frame = scene.frame()
    call = scene.call("torch.distributed.all_reduce(torch.zeros(3))", frame)
    emit("on_library_call", frame, call, "torch.distributed.get_rank")
    assert not told(scene)
    emit("on_library_call", frame, call, "torch.distributed.all_reduce")
    assert told(scene) == [(HintKind.COLLECTIVE, ["torch.zeros(3)", "torch.distributed.all_reduce"])]


def test_a_collective_of_gloo_takes_tensors_of_the_host() -> None:
    scene = Scene(CALL + "    init('gloo')\n", Collectives)
    scene.values["torch.zeros(3)"] = scene.fresh("torch.zeros(3)")
    frame = scene.frame()
    call = scene.call("torch.distributed.all_reduce(torch.zeros(3))", frame)
    emit("on_library_call", frame, call, "torch.distributed.all_reduce")
    assert not told(scene)


ROW = """
def f(device):
    rows = []
    for _ in range(3):
        rows.append((torch.ones(3), x))
    for column in zip(*rows):
        torch.stack(column)
"""
ROWS = {
    "joined by column": (ROW, True),
    "copied to the host": (ROW.replace(", x)", ", x.cpu())"), False),
    "not joined": (ROW.replace("zip(*rows)", "rows"), False),
}


@pytest.mark.parametrize(("code", "seen"), ROWS.values(), ids=ROWS)
def test_a_row_of_new_tensors_and_chosen_ones(code: str, seen: bool) -> None:
    scene = Scene(code, MixedOperands)
    row = scene.first(ast.Tuple)
    chosen = Tensor(CHOSEN, many=True, origin=Origin((Step(row, "created on `device` here", Act.CREATED),)))
    held: list[tuple[ast.expr, Value]] = [(row.elts[0], scene.fresh("torch.ones(3)")), (row.elts[1], chosen)]
    emit("on_row", scene.frame(), row, held)
    assert [kind for kind, _ in told(scene)] == [HintKind.ROW] * seen


# -- branches that move -----------------------------------------------------------------------------------------------

PARTED = """
def f(loader, device, flag):
    for x, y in loader:
        if flag:
            x = x.to(device)
        else:
            y = y.to(device)
        model(x, y)
"""


def test_each_path_moves_the_other_part() -> None:
    scene = Scene(PARTED, OppositeMoves)
    host = Tensor(CPU, many=True)
    there = moved(scene.tree, accelerator("cuda"))
    frame = scene.frame(env={"x": host, "y": host}, loops=[scene.loop()])
    meet_paths(scene, frame, {"x": there}, {"y": there})
    assert told(scene) == [(HintKind.PARTED, ["y", "x"])]


def test_a_path_that_moves_both_parts() -> None:
    scene = Scene(PARTED, OppositeMoves)
    host, there = Tensor(CPU, many=True), moved(scene.tree, accelerator("cuda"))
    frame = scene.frame(env={"x": host, "y": host}, loops=[scene.loop()])
    meet_paths(scene, frame, {"x": there, "y": there}, {"y": there})
    meet_paths(scene, frame, {"x": Tensor(choice("k", there.device, CPU), many=True)}, {"y": there})
    assert not told(scene)


HALF = """
class M:
    def step(self, device, flag):
        if flag:
            x = self.batch.x.to(device)
        else:
            x = self.batch.y
        x = x.to(torch.float32)
"""


@pytest.mark.parametrize(("code", "seen"), [(HALF, True), (HALF.replace("torch.float32", "device"), False)])
def test_one_path_moves_what_it_names(code: str, seen: bool) -> None:
    scene = Scene(code, MovesOfOnePath)
    left = Opaque("self.batch.y", "self.batch.y")
    meet_paths(scene, scene.frame("step"), {"x": moved(scene.tree, CHOSEN)}, {"x": left})
    assert [kind for kind, _ in told(scene)] == [HintKind.HALF] * seen


# -- inputs -----------------------------------------------------------------------------------------------------------

FEED = """
import library
def f(device):
    model = library.load().to(device)
    batch = library.read()
    model(batch.pixels)
    model(batch.pixels.to(device))
"""


def feed(scene: Scene, text: str = "model(batch.pixels)") -> None:
    module = Module(7, text="model")
    frame = scene.frame()
    ORIGIN.put(frame.state.heap, 7, Origin((Step(scene.tree, "moved to `device` here"),)))
    emit("on_module_call", frame, scene.call(text, frame), module, CHOSEN)


def test_a_model_that_was_moved_gets_what_nobody_moves() -> None:
    scene = Scene(FEED, UnmovedInputs)
    feed(scene)
    assert told(scene) == [(HintKind.UNPLACED, ["batch.pixels", "model"])]


MOVED = {
    "as a whole": FEED.replace("library.read()", "library.read()\n    batch.to(device)"),
    "where it is made": FEED.replace("library.read()", "library.read(device)"),
    "nowhere else either": FEED.replace("    model(batch.pixels.to(device))\n", ""),
}


@pytest.mark.parametrize("code", MOVED.values(), ids=MOVED)
def test_inputs_that_are_where_the_code_says(code: str) -> None:
    scene = Scene(code, UnmovedInputs)
    feed(scene)
    assert not told(scene)


# -- shapes -----------------------------------------------------------------------------------------------------------


def in_shape(scene: Scene, place: object = UNKNOWN, apart: bool = False) -> None:
    frame = scene.frame("forward")
    add = scene.first(ast.BinOp)
    made = scene.fresh("torch.zeros(x.shape)")
    assert isinstance(place, type(UNKNOWN))
    met: list[Meeting] = [
        (add.left, made, "left", IMPLIED_CPU),
        (scene.node("x", ast.Name), Tensor(place), "right", place),
    ]
    emit("on_meet", frame, add, "+", met, [(met[0], met[1])] if apart else [])


def test_a_new_tensor_in_the_shape_of_one_that_may_be_anywhere() -> None:
    scene = Scene(MODULE, SameShape)
    in_shape(scene)
    assert told(scene) == [(HintKind.SHAPED, ["torch.zeros(x.shape)", "x"])]


@pytest.mark.parametrize(("place", "apart"), [(CPU, False), (CUDA, True)])
def test_shapes_say_nothing_where_the_places_are_known(place: object, apart: bool) -> None:
    scene = Scene(MODULE, SameShape)
    in_shape(scene, place, apart)
    assert not told(scene)
