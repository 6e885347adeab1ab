"""Whose code it is, by where its file is, and which place is blamed."""

from __future__ import annotations

import dataclasses
import functools
import os
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import CodeType, FrameType

import pytest

import devlint
from devlint.auditor import frames as module
from devlint.auditor.frames import NOWHERE, Frames, Spot, resolve_spot
from tests.growth import calls

PURELIB = sysconfig.get_paths()["purelib"]
STDLIB = sysconfig.get_paths()["stdlib"]


def code(file: str) -> CodeType:
    return compile("pass", file, "exec")


def stack(*files: str, method: str = "call") -> FrameType:
    """The innermost of frames of such files, which call each other from left to right, all in methods of a name."""
    call: Callable[[], FrameType] = lambda: sys._getframe(1)  # noqa: E731 -- the innermost of a chain
    for file in reversed(files):
        namespace: dict[str, Callable[..., FrameType]] = {}
        exec(compile(f"def {method}(inner):\n    return inner()", file, "exec"), namespace)
        call = functools.partial(namespace[method], call)  # which has no frame of its own
    return call()


def files(frames: Frames, frame: FrameType) -> tuple[str | None, str | None]:
    found, via = frames.resolve(frames.at(frame))
    return found and found.file, via and via.file


@pytest.mark.parametrize(
    "file",
    [
        "/home/me/train.py",
        "train.py",
        "/home/me/venv/train.py",  # a script which lies inside of a virtual environment
        "/scratch/ipykernel_123/456.py",
        "<stdin>",
        "<python-input-0>",
        "<ipython-input-3-abc>",
        "<doctest README[0]>",
    ],
)
def test_the_projects_own_code(file: str) -> None:
    assert Frames().is_project(code(file))


@pytest.mark.parametrize(
    "file",
    [
        "<string>",  # what dataclasses and namedtuple generate
        "<frozen importlib._bootstrap>",
        "<eval_with_key>.0",
        "<attrs generated init train.Config>",
        "<__array_function__ internals>",
        "/scratch/torchinductor_me/ab/cab.py",
        os.path.join(STDLIB, "runpy.py"),
        os.path.join(STDLIB, "json", "decoder.py"),
        os.path.join(PURELIB, "torch", "nn", "modules", "module.py"),
        "/opt/other/lib/python3.10/site-packages/torch/_tensor.py",
        os.path.join(PURELIB, "accelerate", "hooks.py"),
        "/opt/other/lib/python3.10/dist-packages/accelerate/hooks.py",
        os.path.join(os.path.dirname(devlint.__file__), "auditor", "session.py"),
    ],
)
def test_code_of_others(file: str) -> None:
    assert not Frames().is_project(code(file))
    assert not Frames(["/home/me"]).is_project(code(file))


def test_an_environment_inside_of_the_project_is_not_the_projects() -> None:
    frames = Frames(["/home/me/project"])
    assert frames.is_project(code("/home/me/project/train.py"))
    assert not frames.is_project(code("/home/me/project/.venv/lib/python3.11/site-packages/timm/models/vit.py"))


def test_a_package_that_is_run_is_the_project_wherever_it_lies() -> None:
    package = os.path.join(PURELIB, "trainer")
    frames = Frames([package])
    assert frames.is_project(code(os.path.join(package, "__main__.py")))
    assert not frames.is_project(code(os.path.join(PURELIB, "trainer_tools", "loop.py")))


def test_packages_below_the_standard_library_are_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a virtual environment, packages are installed in a directory of the standard library."""
    paths = {"stdlib": "/usr/lib/python3.11", "platstdlib": "/usr/lib/python3.11"}
    paths |= {"purelib": "/usr/lib/python3.11/site-packages", "platlib": "/usr/lib/python3.11/site-packages"}
    monkeypatch.setattr(sysconfig, "get_paths", lambda: paths)
    frames = Frames()
    frame = stack("/home/me/train.py", "/usr/lib/python3.11/site-packages/timm/loop.py", "/usr/lib/python3.11/abc.py")
    assert files(frames, frame) == ("/home/me/train.py", "/usr/lib/python3.11/site-packages/timm/loop.py")


def test_a_link_to_the_packages_leads_to_libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, linked = tmp_path / "real", tmp_path / "linked"
    real.mkdir()
    linked.symlink_to(real)
    monkeypatch.setattr(sysconfig, "get_paths", lambda: dict.fromkeys(["stdlib", "platstdlib"], STDLIB) | paths)
    paths = {"purelib": str(linked), "platlib": str(linked)}
    frames = Frames()
    assert not frames.is_project(code(str(real / "timm.py")))
    assert not frames.is_project(code(str(linked / "timm.py")))


def test_a_torch_that_is_used_where_it_was_built_is_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch is imported long after the audit has begun."""
    frames = Frames()
    torch = type(sys)("torch")
    torch.__file__ = "/src/pytorch/torch/__init__.py"
    monkeypatch.setitem(sys.modules, "torch", torch)
    assert not frames.is_project(code("/src/pytorch/torch/nn/functional.py"))
    assert frames.is_project(code("/src/pytorch/benchmarks/run.py"))


def test_the_innermost_frames_are_blamed() -> None:
    library, outer = os.path.join(PURELIB, "timm", "loop.py"), os.path.join(PURELIB, "hydra", "main.py")
    torch = os.path.join(PURELIB, "torch", "_tensor.py")
    frames = Frames()
    assert files(frames, stack("/a/main.py", outer, "/a/train.py", library, torch)) == ("/a/train.py", library)
    # a library that calls the project is not inside of it
    assert files(frames, stack("/a/main.py", library, "/a/train.py", torch)) == ("/a/train.py", None)
    # generated code is nobody's
    assert files(frames, stack("/a/train.py", "<string>", torch)) == ("/a/train.py", None)


def test_what_torch_itself_computes_is_named_where_no_library_is() -> None:
    """A layer that waits inside; what hands calls over is none."""
    layer, plumbing = (os.path.join(PURELIB, "torch", "nn", "modules", name) for name in ("rnn.py", "module.py"))
    library = os.path.join(PURELIB, "timm", "loop.py")
    frames = Frames()
    assert files(frames, stack("/a/train.py", plumbing, layer, plumbing)) == ("/a/train.py", layer)
    assert files(frames, stack("/a/train.py", plumbing)) == ("/a/train.py", None)
    assert files(frames, stack("/a/train.py", library, layer)) == ("/a/train.py", library)
    # recurrent layers move their parameters by a method of their own
    assert files(frames, stack("/a/train.py", plumbing, layer, plumbing, method="_apply")) == ("/a/train.py", None)


def test_a_thread_of_nobody_is_nowhere() -> None:
    """As the thread that pins memory, whose frames are the standard library's and torch's."""
    frames = Frames()
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(frames.here).result() == NOWHERE
    assert frames.resolve(NOWHERE) == (None, None)


def test_a_dataclass_does_not_take_the_blame() -> None:
    frames = Frames()

    @dataclasses.dataclass
    class Batch:
        images: int

        def __post_init__(self) -> None:
            self.place = frames.at(sys._getframe(1))  # the generated __init__, as of a field's converter

    line = sys._getframe().f_lineno + 1
    batch = Batch(3)
    frame, via = frames.resolve(batch.place)
    assert frame is not None
    assert (frame.file, frame.line, via) == (__file__, line, None)


def test_each_call_on_a_line_is_a_place_of_its_own() -> None:
    frames = Frames()
    first, second = frames.here(), frames.here()
    for number, name in ((first, "first"), (second, "second")):
        frame, _ = frames.resolve(number)
        assert frame is not None
        assert frame.function.endswith("test_each_call_on_a_line_is_a_place_of_its_own"), name
    if sys.version_info >= (3, 11):
        assert first != second
        one, other = frames.resolve(first)[0], frames.resolve(second)[0]
        assert one is not None
        assert other is not None
        assert one.line == other.line
        # columns count from 0: `    first, second = frames.here(), frames.here()`
        assert (one.column, one.end_column) == (20, 33)
        assert (other.column, other.end_column) == (35, 48)


def test_only_the_line_is_known_without_positions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.sys, "version_info", (3, 10))
    line = sys._getframe().f_lineno + 2
    frame = sys._getframe()
    found = resolve_spot(Spot(frame.f_code, frame.f_lasti))
    assert (found.file, found.line, found.column, found.end_line) == (__file__, line, None, None)


def test_a_relative_file_is_where_the_run_began(tmp_path: Path) -> None:
    """The script may change the directory."""
    script = (
        "import os\nfrom devlint.auditor.frames import Spot, resolve_spot\nos.chdir('/')\n"
        "print(resolve_spot(Spot(compile('1', 'train.py', 'exec'), 0)).file)"
    )
    root = str(Path(devlint.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": root},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.strip() == str(tmp_path / "train.py"), done.stderr


def test_generated_code_is_not_kept() -> None:
    frames = Frames()
    for _ in range(3):
        frames.is_project(code("<string>"))
    assert not frames._alive


def test_threads_that_find_places_at_once_do_not_mix_them_up() -> None:
    frames = Frames()
    inside = [stack(f"/a/{number}.py") for number in range(400)]
    found: dict[int, int] = {}

    def work(part: int) -> None:
        for number in range(part, 400, 4):
            found[number] = frames.at(inside[number])

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(part,)) for part in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert [frames.resolve(found[number])[0].file for number in range(400)] == [  # type: ignore[union-attr]  # fails
        f"/a/{number}.py" for number in range(400)
    ]


def test_a_known_place_is_found_with_one_look_at_each_frame() -> None:
    """Through 15 frames of torch that takes 1 to 2 us."""
    torch = os.path.join(PURELIB, "torch", "_tensor.py")
    frames, frame = Frames(), stack("/a/train.py", *[torch] * 15)
    unknown = calls(lambda: frames.at(frame))
    known = calls(lambda: frames.at(frame))
    # of each frame its identity and what is known of that; then the place that they come to
    assert known < 2 * (15 + 1) + 10
    assert unknown > 10 * known


def test_an_expression_is_one_place_however_the_interpreter_runs_it() -> None:
    """Python 3.11 makes a call of a built-in method by another instruction once it has seen a few."""
    frames = Frames((os.path.dirname(__file__),))
    numbers = []

    class Probe:
        __hash__ = None  # type: ignore[assignment]  # comparing is all that is asked of it

        def __eq__(self, other: object) -> bool:
            numbers.append(frames.at(sys._getframe(1)))
            return False

    probe, values = Probe(), [0]
    for _ in range(100):
        values.count(probe)
    assert len(numbers) == 100
    assert len(set(numbers)) == 1
