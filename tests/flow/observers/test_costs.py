"""Costs: waits, times and graphs.  Each case is an event, and what is said to cost something after it."""

from __future__ import annotations

import ast

import pytest

from devlint.flow.domain.tensors import Tensor
from devlint.flow.observers.costs.host_syncs import HostSyncs
from devlint.flow.observers.costs.retained_graphs import RetainedGraphs
from devlint.flow.observers.costs.timings import Timings
from devlint.flow.transfer.device_queue import DeviceQueue, Reading
from devlint.sites.costs import Keep, Sync, Timing
from tests.flow.observers.scene import CUDA, Scene, emit

THERE = Tensor(CUDA, many=True)
STEPS = """
def f(loader, model, optimizer):
    for x in loader:
        loss = model(x)
        loss.backward()
        optimizer.step()
        total += loss
        loss.item()
"""
FORWARD = """
class M(nn.Module):
    def forward(self, x):
        return x.cpu().numpy()
"""


def wait(scene: Scene, text: str, step: bool = True) -> None:
    frame = scene.frame(loops=[scene.loop(step)])
    call = scene.node(text, ast.Call)
    assert isinstance(call.func, ast.Attribute)
    emit("on_wait", frame, call, call.func.value, THERE, call.func.attr)


def regions(scene: Scene) -> list[str]:
    return [site.region for site in scene.sites(Sync)]


def test_a_step_waits() -> None:
    scene = Scene(STEPS, HostSyncs)
    wait(scene, "loss.item()")
    assert regions(scene) == ["train"]


def test_whoever_has_just_waited_waits_for_nothing() -> None:
    scene = Scene(STEPS, HostSyncs)
    scene.component(DeviceQueue).wait(scene.frame(), scene.node("model(x)", ast.Call))
    wait(scene, "loss.item()")
    assert regions(scene) == []


@pytest.mark.parametrize(("called", "seen"), [("pack_padded_sequence", []), ("log", ["train"])])
def test_what_a_function_takes_from_the_host_alone_has_to_be_brought_there(called: str, seen: list[str]) -> None:
    scene = Scene(STEPS.replace("loss.item()", f"{called}(loss.item())"), HostSyncs)
    emit("on_arguments", scene.frame(), scene.node(f"{called}(loss.item())", ast.Call))
    wait(scene, "loss.item()")
    assert regions(scene) == seen


def test_a_forward_pass_moves_a_tensor_only_for_its_values() -> None:
    scene = Scene(FORWARD, HostSyncs)
    frame = scene.frame("forward")
    inner, outer = scene.node("x.cpu()", ast.Call), scene.call("x.cpu().numpy()", scene.frame("forward"))
    assert isinstance(inner.func, ast.Attribute)
    assert isinstance(outer.node.func, ast.Attribute)
    emit("on_wait", frame, inner, inner.func.value, THERE, "cpu")
    assert regions(scene) == []
    emit("on_method", frame, outer, THERE, outer.node.func)
    assert regions(scene) == ["forward"]


CLOCK = "def f():\n    start = time()\n    model(x)\n    return time() - start\n"


def elapsed(*happened: str, depth: int = 0) -> list[Timing]:
    """The times taken wrongly where this happens between two readings."""
    scene = Scene(CLOCK, Timings)
    frame, queue = scene.frame(), scene.component(DeviceQueue)
    node = scene.node("time()", ast.Call)
    work = scene.node("model(x)", ast.Call)
    for what in happened:
        if what == "work":
            queue.work(frame, work, CUDA)
        else:
            queue.wait(frame, work)
    difference = scene.first(ast.BinOp)
    emit("on_subtraction", frame, difference, Reading(node, len(happened), depth), Reading(node, 0, 0))
    return scene.sites(Timing)


@pytest.mark.parametrize(("happened", "wrong"), [(("work",), 1), (("work", "wait"), 0), (("wait", "work"), 1), ((), 0)])
def test_a_time_is_right_if_the_host_has_waited(happened: tuple[str, ...], wrong: int) -> None:
    assert len(elapsed(*happened)) == wrong


def test_readings_in_different_loops_are_no_time() -> None:
    assert not elapsed("work", depth=1)


@pytest.mark.parametrize(
    ("code", "kept"),
    [(STEPS, ["loss"]), (STEPS.replace("total += loss", "total += loss.item()"), [])],
    ids=["the loss", "its value"],
)
def test_a_loop_keeps_losses(code: str, kept: list[str]) -> None:
    scene = Scene(code, RetainedGraphs)
    loop = scene.loop(step=True)
    assert isinstance(loop.node, ast.For)
    emit("on_step_loop", scene.frame(loops=[loop]), loop.node)
    assert [ast.unparse(site.node) for site in scene.sites(Keep)] == kept
