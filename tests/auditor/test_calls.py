"""What is seen of the calls of the project's own functions, and what it costs to look."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import torch

from devlint.auditor.calls import observer
from devlint.auditor.calls.observer import FIRST, CallObserver
from devlint.auditor.calls.sights import Look, Sights, look
from devlint.auditor.session import Session, Settings, emit
from devlint.observation import Observation, Sight
from devlint.record import Ending
from tests.auditor.profiling import observing

NATIVE = hasattr(sys, "monitoring")
Seen = dict[str, dict[str, Sight]]


def sights(observations: tuple[Observation, ...]) -> Seen:
    return {one.function: {sight.name: sight for sight in one.sights} for one in observations}


def told(sight: Sight) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return sight.kinds, sight.devices


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., tuple[Observation, ...]]:
    """Run code that lies in a file, observed; ``during`` is called with the session once it has run."""

    def running(text: str, during: Callable[[Session, dict[str, Any]], None] | None = None) -> tuple[Observation, ...]:
        file = tmp_path / "code.py"
        file.write_text(dedent(text), encoding="utf-8")
        space: dict[str, Any] = {"torch": torch}
        with observing(str(tmp_path)) as session:
            exec(compile(file.read_text(encoding="utf-8"), str(file), "exec", dont_inherit=True), space)
            if during is not None:
                during(session, space)
            found = session.process(Ending()).observations
        assert not session.failure
        return found

    return running


def test_arguments_and_results(run) -> None:
    (found,) = run("""
        def work(x, y, *rest, scale=None, **more):
            return x * y

        work(torch.ones(2), torch.tensor(2.0), torch.ones(1), more=torch.ones(1))
        """)
    assert (found.function, found.line, found.calls) == ("work", 2, 1)
    seen = {sight.name: (told(sight), sight.scalar) for sight in found.sights}
    assert seen == {
        "x": ((("tensor",), ("cpu",)), False),
        "y": ((("tensor",), ("cpu",)), True),
        "rest": ((("tensors",), ("cpu",)), False),
        "more": ((("tensors",), ("cpu",)), False),
        "return": ((("tensor",), ("cpu",)), False),
    }


def test_what_self_keeps(run) -> None:
    seen = sights(
        run("""
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(2, 2)
                self.scale, self.cache = torch.ones(2), None

            def forward(self, x):
                self.cache = x if self.cache is None else self.cache
                return self.layer(x) * self.scale

        class Plain:
            def __init__(self, kept):
                self.kept = kept

            def get(self):
                return self.kept

        net = Net()
        net(torch.ones(2)), net(torch.ones(2)), Plain([torch.ones(1)]).get()
        """)
    )
    assert told(seen["forward"]["self"]) == (("module",), ("cpu",))
    assert told(seen["forward"]["self.scale"]) == (("tensor",), ("cpu",))
    # as the call found it
    assert told(seen["forward"]["self.cache"]) == (("none", "tensor"), ("cpu",))
    assert told(seen["get"]["self.kept"]) == (("tensors",), ("cpu",))
    assert "self.layer" not in seen["forward"]


def test_modules_devices_and_containers() -> None:
    assert look(torch.nn.Linear(2, 2)) == Look("module", ("cpu",))
    assert look(torch.nn.ReLU()) == Look("module", ())
    assert look(torch.nn.Linear(2, 2, device="meta")).kind == "other"
    assert look(torch.device("cuda", 1)) == Look("device", ("cuda:1",))
    assert look("cuda:0") == Look("device", ("cuda:0",))
    assert look("a text").kind == "other"
    assert look({"a": torch.ones(2), "b": 1}) == Look("tensors", ("cpu",))
    # one level, and no more
    assert look([[torch.ones(2)]]).kind == "other"
    assert look(3.0).kind == "other"
    assert look(torch.ones(2, device="meta")).kind == "other"


def test_no_code_of_the_script_runs() -> None:
    class Proxy:
        @property
        def __class__(self):
            raise AssertionError

        def __getattr__(self, name):
            raise AssertionError

    assert look(Proxy()).kind == "other"


def test_several_devices_are_all_told() -> None:
    sights = Sights()
    for seen in (Look("tensor", ("cuda:0",)), Look("tensor", ("cpu",), True), Look("none"), Look("tensor", ("cpu",))):
        sights.add(seen)
    assert sights.described("x") == Sight(
        name="x", kinds=("tensor", "none"), devices=("cuda:0", "cpu"), scalar=True, calls=4
    )
    assert Sights().described("x") is None


def test_of_many_devices_only_some_are_kept() -> None:
    sights = Sights()
    for number in range(100):
        sights.add(Look("tensor", (f"cuda:{number}",)))
    described = sights.described("x")
    assert described is not None
    assert len(described.devices) < 10


def test_a_generator_is_one_call_and_has_no_result(run) -> None:
    (found,) = run("""
        def batches(x):
            for _ in range(3):
                yield x

        list(batches(torch.ones(2)))
        """)
    assert (found.calls, [sight.name for sight in found.sights]) == (1, ["x"])


def test_what_is_not_the_projects_or_has_no_name_is_left_out(run) -> None:
    assert not run("""
        import json
        json.dumps([1])
        (lambda x: x)(torch.ones(2))
        [x for x in [torch.ones(2)]]
        """)


def test_the_first_calls_and_then_seldom(run) -> None:
    calls = []

    def steps(session: Session, space: dict[str, Any]) -> None:
        def count() -> int:
            return session.process(Ending()).observations[0].calls

        calls.append(count())
        for _ in range(64):
            emit(session.signals.step_end)
            for _ in range(10):
                space["work"](torch.ones(2))
        calls.append(count())

    run(
        """
        def work(x):
            return x

        for _ in range(100):
            work(torch.ones(2))
        """,
        steps,
    )
    # one more after each of the steps 1, 2, 4, 8, 16, 32 and 64
    assert calls == [FIRST, FIRST + 7]


def test_what_is_moved_after_many_calls_is_seen_where_it_is_then(run) -> None:
    def move(session: Session, space: dict[str, Any]) -> None:
        emit(session.signals.move)
        space["work"]([torch.ones(2)])

    (found,) = run("def work(x):\n    pass\n\nfor _ in range(100):\n    work(torch.ones(2))\n", move)
    assert found.sights[0].kinds == ("tensor", "tensors")


def test_it_is_bounded(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observer, "MOST_FUNCTIONS", 2)
    monkeypatch.setattr(observer, "MOST_NAMES", 3)
    found = run("""
        def one(a, b, c, d, e): pass
        def two(a): pass
        def three(a): pass
        x = torch.ones(2)
        one(x, x, x, x, x), two(x), three(x)
        """)
    assert [(one.function, len(one.sights)) for one in found] == [("one", 3), ("two", 1)]


def test_it_stops_where_looking_takes_too_long(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observer, "ALLOWANCE", 0.0)
    monkeypatch.setattr(observer, "SHARE", 0.0)
    assert not run("def work(x): pass\nwork(torch.ones(2))\n")


@pytest.mark.skipif(not NATIVE, reason="Python itself tells of calls from 3.12")
class TestNatively:
    def test_a_frame_keeps_nothing_alive(self, run) -> None:
        def free(session: Session, space: dict[str, Any]) -> None:
            gone: list[Any] = []

            def check() -> None:
                gc.collect()
                gone.append(space["reference"]())

            space["check"] = check
            tensor = torch.ones(2)
            space["reference"] = weakref.ref(tensor)
            box = [tensor]
            del tensor
            space["work"](box.pop())
            assert gone == [None]

        run("def work(x):\n    del x\n    check()\n", free)

    def test_nothing_is_left(self) -> None:
        before = [sys.monitoring.get_tool(number) for number in range(6)]
        session = Session(Settings())
        session.start([CallObserver(session)])
        assert "devlint" in [sys.monitoring.get_tool(number) for number in range(6)]
        session.stop()
        assert [sys.monitoring.get_tool(number) for number in range(6)] == before

    def test_where_all_tools_are_taken_nothing_is_seen(self) -> None:
        for number in (3, 4):
            sys.monitoring.use_tool_id(number, "another")
        try:
            with observing(str(Path(__file__).parent)) as session:
                assert session.process(Ending()).observations == ()
        finally:
            for number in (3, 4):
                sys.monitoring.free_tool_id(number)


@pytest.mark.skipif(NATIVE, reason="of Python 3.12 and later there is something to see")
def test_before_python_3_12_nothing_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "code.py"
    file.write_text("def work(x): pass\nwork(torch.ones(2))\n", encoding="utf-8")
    session = Session(Settings(roots=(str(tmp_path),)))
    session.start([CallObserver(session)])
    exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), {"torch": torch})
    session.stop()
    assert session.process(Ending()).observations == ()
