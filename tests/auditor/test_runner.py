"""A script under audit does what it does without: each is run both ways, and all that can be seen is compared."""

from __future__ import annotations

import os
import py_compile
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from textwrap import dedent

import pytest

import devlint
from devlint.auditor.running.runner import describe

ROOT = str(Path(devlint.__file__).parents[1])
POSIX = pytest.mark.skipif(os.name != "posix", reason="signals and fork are those of POSIX")
LIMIT = 60
# A torch that costs nothing to import: the runner must not care.
TORCH = {"stub/torch/__init__.py": "__version__ = '0'\n"}


def environment_of(directory: Path, **more: str) -> dict[str, str]:
    path = os.pathsep.join([ROOT, str(directory / "stub")])
    return {**os.environ, "PYTHONPATH": path, "TMPDIR": str(directory), "COLUMNS": "100", **more}


def run(directory: Path, *command: str, stdin: str = "") -> tuple[int, str, str]:
    environment = environment_of(directory)
    done = subprocess.run(
        [sys.executable, *command], cwd=directory, env=environment, capture_output=True, text=True, timeout=LIMIT,
        input=stdin,
    )  # fmt: skip
    # addresses are never the same, and how deep a recursion may go is not to the frame
    err = re.sub("0x[0-9a-f]+|repeated [0-9]+ more times", "", done.stderr)
    return done.returncode, done.stdout, err


def assert_same(directory: Path, *command: str) -> tuple[int, str, str]:
    """Run ``python COMMAND`` and ``devlint audit COMMAND``, and compare; the result is what both did."""
    plain = run(directory, *command)
    code, out, err = run(directory, "-m", "devlint", "audit", *command)
    printed, mark, report = err.partition("\ndevlint audit ")
    assert mark, err
    assert report.startswith(" ".join(command))
    assert (code, out, printed) == plain
    return plain


def script(tree, text: str, **files: str) -> Path:
    return tree({"script.py": dedent(text), **TORCH, **files})


SCRIPTS = {
    "what a script finds": """
        import __main__, inspect, os, pickle, sys, tempfile
        from dataclasses import dataclass
        from typing import get_type_hints
        print(__name__, __file__, __spec__, __package__, __doc__, __loader__.name, __cached__, type(__builtins__))
        print(sorted(globals()), "torch" in sys.modules, "numpy" in sys.modules)
        print(sys.argv, sys.path[0], sys.flags, __main__.__dict__ is globals(), sys.modules["__main__"] is __main__)
        x: int = 3
        print(get_type_hints(__main__))
        @dataclass
        class Point:
            x: int
        print(pickle.loads(pickle.dumps(Point(3))), Point.__module__)
        print(inspect.getsource(Point), inspect.getsource(__main__), inspect.getsourcefile(__main__))
        try:
            def f(x: undefined): pass
        except NameError:
            print("no __future__ is passed on")
        os.environ["TMPDIR"] = os.getcwd()
        print(tempfile.gettempdir())
        import helper
        print(helper.__file__, file=sys.stderr)
        class Thing:
            def __del__(self): print("deleted at the end")
        thing = Thing()
        print("no line end", end="")
        sys.stderr.write("none")
    """,
    "argparse": """
        import argparse
        parser = argparse.ArgumentParser()
        parser.add_argument("--steps", type=int, required=True)
        parser.parse_args()
    """,
    "exit none": "raise SystemExit",
    "exit 3": "import sys; sys.exit(3)",
    "exit 256": "import sys; sys.exit(256)",
    "exit -1": "import sys; sys.exit(-1)",
    "exit text": "import sys; print('out'); sys.exit('went wrong')",
    "exit tuple": "import sys; sys.exit((1, 2))",
    "exception": """
        def f(x):
            return 1 / x
        f(0)
    """,
    "exception with a cause and notes": """
        try:
            {}["key"]
        except KeyError as error:
            raise ValueError("text") from error
    """,
    "exception group": """
        import sys
        if sys.version_info >= (3, 11):
            error = ExceptionGroup("several", [ValueError(1), TypeError(2)])
            error.add_note("a note")
            raise error
    """,
    "syntax error": "x = = 1",
    "syntax error in an import": "import broken",
    "missing import": "import no_such_module_at_all",
    "recursion": """
        def f():
            f()
        f()
    """,
    "depth": """
        def f(n):
            return n and f(n - 1)
        f(990)
        print("deep enough")
    """,
    "keyboard interrupt by hand": "raise KeyboardInterrupt('by hand')",
    "hook": """
        import sys
        sys.excepthook = lambda kind, error, trace: print("hook:", kind, error, trace.tb_lineno)
        1 / 0
    """,
    "hook that fails": """
        import sys
        def hook(kind, error, trace):
            raise TypeError("in the hook")
        sys.excepthook = hook
        1 / 0
    """,
    "hook that leaves": """
        import sys
        sys.excepthook = lambda kind, error, trace: sys.exit(7)
        1 / 0
    """,
    "atexit": """
        import atexit
        atexit.register(print, "first in, last out")
        atexit.register(lambda: 1 / 0)
        atexit.register(print, "last in, first out")
        print("main")
    """,
    "threads": """
        import atexit, threading, time
        atexit.register(print, "exit function")
        def work():
            time.sleep(0.2)
            print("thread ends", threading.main_thread().is_alive())
        threading.Thread(target=work).start()
        print("main ends")
    """,
    "thread that fails": """
        import threading
        thread = threading.Thread(target=lambda: 1 / 0, name="worker")
        thread.start(); thread.join()
    """,
    "closed streams": "import sys; sys.stdout.close()",
    "standard input": "print(input(), input())",
}
POSIX_SCRIPTS = {
    "interrupt": "import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(5)",
    "terminate": "import os, signal, time; os.kill(os.getpid(), signal.SIGTERM); time.sleep(5)",
    "hang up": "import os, signal, time; os.kill(os.getpid(), signal.SIGHUP); time.sleep(5)",
    "own handler": """
        import os, signal, sys
        print(signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT))
        print(signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(9)))
        os.kill(os.getpid(), signal.SIGTERM)
    """,
    "ignored": """
        import os, signal
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.kill(os.getpid(), signal.SIGTERM)
        print("still here", signal.signal(signal.SIGTERM, signal.SIG_DFL))
    """,
    "os._exit": "import os; os.write(1, b'bye'); os._exit(5)",
    "fork": """
        import os, sys
        print("before", flush=True)
        pid = os.fork()
        if pid == 0:
            print("child")
            sys.exit(3)
        print("child left with", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    """,
    "terminated fork": """
        import os, signal, time
        pid = os.fork()
        if pid == 0:
            time.sleep(10); os._exit(1)
        os.kill(pid, signal.SIGTERM)
        print("child left with", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    """,
    "a child's exit": """
        import os
        pid = os.fork()
        if pid == 0:
            os._exit(4)
        print("child left with", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    """,
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_does_the_same(name: str, tree) -> None:
    directory = script(tree, SCRIPTS[name], **{"helper.py": "", "broken.py": "def :"})
    assert_same(directory, "script.py", "--flag", "--", "value")


@POSIX
@pytest.mark.parametrize("name", POSIX_SCRIPTS)
def test_a_process_ends_the_same(name: str, tree) -> None:
    assert_same(script(tree, POSIX_SCRIPTS[name]), "script.py")


PACKAGE = {
    "package/__init__.py": "print('package', __name__)",
    "package/helper.py": "def fail(): raise ValueError('in a module')",
    "package/__main__.py": "from . import helper; import sys; print(__name__, __spec__.name, sys.argv, sys.path[0])",
    "package/train.py": """
import pickle, sys
from .helper import fail
class Thing: pass
print(__package__, __file__, __spec__.name, sys.argv, pickle.loads(pickle.dumps(Thing())).__class__)
fail()
""",
    "package/left.py": "import sys; sys.exit('left')",
    "package/broken.py": "x = = 1",
}


@pytest.mark.parametrize("name", ["package", "package.train", "package.left", "package.broken", "package.nothing"])
def test_a_module_does_the_same(name: str, tree) -> None:
    assert_same(tree({**PACKAGE, **TORCH}), "-m", name, "--help", "-m")


def test_a_directory_an_archive_and_compiled_code_do_the_same(tree) -> None:
    main = "import sys, helper; print(__name__, __spec__.name, sys.argv, sys.path[0]); 1 / 0"
    directory = tree({"app/__main__.py": main, "app/helper.py": "", "plain.py": "print(__file__, __name__)", **TORCH})
    assert_same(directory, "app", "x")
    with zipfile.ZipFile(directory / "app.zip", "w") as archive:
        archive.writestr("__main__.py", main)
        archive.writestr("helper.py", "")
    assert_same(directory, "app.zip", "x")
    py_compile.compile("plain.py", "plain.pyc")
    assert_same(directory, "plain.pyc")


def test_the_path_is_that_of_the_script_however_it_is_named(tree) -> None:
    text = "import sys; print(__file__, sys.argv, sys.path); raise ValueError"
    directory = tree({"there/real.py": text, **TORCH})
    (directory / "link.py").symlink_to("there/real.py")
    assert_same(directory, "link.py")
    assert_same(directory, "./there/../there/real.py")
    assert_same(directory, str(directory / "there" / "real.py"))


@POSIX
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_know_the_classes_of_main(method: str, tree) -> None:
    text = """
        import multiprocessing, sys
        from dataclasses import dataclass
        @dataclass
        class Point:
            x: int
        def double(point):
            return Point(2 * point.x)
        def fail():
            sys.exit(6)
        if __name__ == "__main__":
            context = multiprocessing.get_context(sys.argv[1])
            with context.Pool(2) as pool:
                print(pool.map(double, [Point(1), Point(2)]))
            process = context.Process(target=fail)
            process.start(); process.join()
            print(process.exitcode)
    """
    directory = script(tree, text)
    assert_same(directory, "script.py", method)
    tree({"package/__init__.py": "", "package/work.py": dedent(text)})
    assert_same(directory, "-m", "package.work", method)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (KeyError("x"), "KeyError: 'x'"),
        (ValueError(), "ValueError"),
        (SyntaxError("bad", ("train.py", 3, 1, "x = = 2\n")), "SyntaxError: bad"),
        # torch.load goes on for ten lines of advice, partly bold
        (
            RuntimeError("Weights only load failed. There are \x1b[1mtwo options\x1b[0m. \n\t(1) In PyTorch 2.6"),
            "RuntimeError: Weights only load failed. There are two options.",
        ),
        # torch.multiprocessing.spawn
        (
            RuntimeError("\n\n-- Process 1 died of:\nTraceback (most recent call last):\n  File\nE: b\n"),
            "RuntimeError: E: b",
        ),
        # a worker of a DataLoader
        (
            RuntimeError("Caught E in worker 0.\nOriginal Traceback (most recent call last):\n  File\nE: b"),
            "RuntimeError: Caught E in worker 0. E: b",
        ),
    ],
)  # fmt: skip
def test_an_exception_in_a_line(error: Exception, line: str) -> None:
    assert describe(error).error == line


@POSIX
def test_a_pipe_that_nobody_reads_any_more(tree) -> None:
    directory = script(tree, "for number in range(100_000): print(number)")
    for prefix in ([], ["-m", "devlint", "audit"]):
        command = subprocess.list2cmdline([sys.executable, *prefix, "script.py"])
        done = subprocess.run(
            ["bash", "-c", f"{command} 2>err | head -1; echo ${{PIPESTATUS[0]}}; head -c 300 err"],
            cwd=directory, env=environment_of(directory), timeout=LIMIT,
            capture_output=True, text=True,
        )  # fmt: skip
        first, code, error = done.stdout.split("\n", 2)
        assert (first, code) == ("0", "1")
        assert error.startswith("Traceback (most recent call last):\n")
        assert "devlint/" not in error


@POSIX
def test_the_flags_of_the_interpreter_hold(tree) -> None:
    directory = script(tree, "import sys; assert not sys.flags.optimize; print(sys.path[0], __debug__)")
    environment = environment_of(directory, PYTHONSAFEPATH="1")
    for command in (["-O", "script.py"], ["script.py"]):
        plain, audited = (
            subprocess.run(
                [sys.executable, *before, *command[-1:]],
                cwd=directory,
                env=environment,
                capture_output=True,
                text=True,
                timeout=LIMIT,
            ).stdout
            for before in (command[:-1], [*command[:-1], "-m", "devlint", "audit"])
        )
        assert audited == plain != ""


def test_the_installed_command_leaves_its_own_directory_off_the_path(tree) -> None:
    directory = tree(
        {
            "bin/devlint": "from devlint.cli import main\nmain()\n",
            "bin/helper.py": "raise AssertionError('not the script\\'s')",
            "there/helper.py": "",
            "there/script.py": "import sys, helper; print(sys.path, sys.argv)",
            **TORCH,
        }
    )
    plain = run(directory, "there/script.py", "x")
    assert plain[0] == 0
    assert run(directory, "bin/devlint", "audit", "there/script.py", "x")[:2] == plain[:2]
