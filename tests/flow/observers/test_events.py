"""Events: who hears of them, in which frames, and in which order."""

from __future__ import annotations

import pytest

from devlint.flow.core import events
from devlint.flow.core.call import Call
from devlint.flow.core.events import Observer
from devlint.flow.core.interpreter import Frame, Interpreter
from tests.flow.observers.scene import Scene, emit

CODE = "def f(x):\n    x.numpy()\n"


class First(Observer):
    def __init__(self, interpreter: Interpreter) -> None:
        self.heard: list[str] = []

    def on_library_call(self, frame: Frame, call: Call, path: str) -> None:
        self.heard.append(path)
        ORDER.append(type(self).__name__)


class Second(First):
    pass


class Inlined(First):
    wants_inlined = True


class Quiet(First):
    wants_quiet = True


class Always(First):
    wants_inlined = wants_quiet = True


class Deaf(Observer):
    pass


ORDER: list[str] = []
EVERYBODY = (First, Inlined, Quiet, Always)
WHO = {
    "alone": (False, False, EVERYBODY),
    "for a caller": (True, False, (Inlined, Always)),
    "tried out": (False, True, (Quiet, Always)),
    "tried out for a caller": (True, True, (Always,)),
}


def tell(scene: Scene, path: str = "numpy.mean", inlined: bool = False) -> None:
    frame = scene.frame(inlined=inlined)
    emit("on_library_call", frame, scene.call("x.numpy()", frame), path)


@pytest.mark.parametrize(("inlined", "quiet", "who"), WHO.values(), ids=WHO)
def test_an_observer_hears_of_what_it_wants(inlined: bool, quiet: bool, who: tuple[type[First], ...]) -> None:
    scene = Scene(CODE, *EVERYBODY)
    scene.mute(quiet)
    for _ in range(2):
        tell(scene, inlined=inlined)
    assert [kind for kind in EVERYBODY if scene.component(kind).heard == ["numpy.mean"] * 2] == list(who)
    assert [kind for kind in EVERYBODY if scene.component(kind).heard] == list(who)


@pytest.mark.parametrize("kinds", [(First, Second), (Second, First)])
def test_observers_hear_in_their_order(kinds: tuple[type[First], ...]) -> None:
    ORDER.clear()
    tell(Scene(CODE, *kinds))
    assert [kind.__name__ for kind in kinds] == ORDER


def test_who_handles_no_event_is_not_asked() -> None:
    scene = Scene(CODE, Deaf, First)
    tell(scene)
    assert events.heard(scene.frame(), "on_library_call") == [scene.component(First)]
    assert events.heard(scene.frame(), "on_branch") == []


def test_an_observer_is_quiet_no_longer_than_the_interpreter() -> None:
    scene = Scene(CODE, First)
    with scene.quiet():
        tell(scene, "numpy.mean")
    tell(scene, "numpy.std")
    assert scene.component(First).heard == ["numpy.std"]
