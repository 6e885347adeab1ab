"""``devlint audit`` and ``devlint report``: what is refused, what is kept, and that nothing is worse than without."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import pytest
from click.testing import CliRunner, Result

from devlint.auditor.running import storage
from devlint.cli import main
from devlint.record import Record
from tests.auditor.running import LIMIT, Done, audit, environment, run, script
from tests.report import records
from tests.simulator.available import simulates

POSIX = pytest.mark.skipif(os.name != "posix", reason="needs what POSIX has")
# Without torch, a run costs a tenth.
NO_TORCH = {"torch/__init__.py": ""}


def invoke(*arguments: str) -> Result:
    result = CliRunner().invoke(main, [*arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def only(directory: Path) -> Record:
    (file,) = directory.glob("devlint-*/run-*/record.json")
    return storage.read(str(file))


class TestRefusals:
    @pytest.fixture(autouse=True)
    def path(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "path", list(sys.path))

    @pytest.mark.parametrize(
        ("arguments", "line"),
        [
            (["nope.py"], "nope.py: No such file or directory"),
            (["."], ".: is a directory without a __main__.py"),
            (["script.py/x"], "script.py/x: Not a directory"),
            (["a.ipynb"], "a.ipynb: is a notebook; in its cells, `with devlint.audit() as run:` does the same"),
            (["-m", "nope"], "there is no module named 'nope'"),
            (["-m", ".nope"], "there is no module named '.nope'"),
            (["--devices", "2", "script.py"], "--devices says how many devices to simulate, and needs --simulate"),
            (["--select", "QQQ", "script.py"], "--select: unknown rule 'QQQ'"),
            (["--fail-on", "x", "script.py"], "--fail-on: expected one of info, warning, error, not 'x'"),
            (["--config", "nope.toml", "script.py"], "nope.toml: No such file or directory"),
            (["--output", "no/such/file", "script.py"], "--output: no/such: No such directory"),
            (["--output", ".", "script.py"], "--output: .: Is a directory"),
            (["--output", os.devnull, "script.py"], f"--output: {os.devnull}: Is no regular file"),
        ],
    )
    def test_one_line_and_the_script_does_not_run(self, arguments: list[str], line: str, tree) -> None:
        here = tree({"script.py": "open('ran', 'w')", "a.ipynb": "open('ran', 'w')"})
        result = invoke("audit", *arguments)
        assert result.stderr == f"error: {line}\n"
        assert result.exit_code == 2
        assert not (here / "ran").exists()

    def test_no_torch(self, tree, monkeypatch: pytest.MonkeyPatch) -> None:
        tree({"script.py": ""})
        find_spec = importlib.util.find_spec
        monkeypatch.delitem(sys.modules, "torch", raising=False)
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "torch" else find_spec(name))
        result = invoke("audit", "script.py")
        assert result.stderr == "error: torch is not installed for this Python: pip install 'devlint[audit]'\n"
        assert result.exit_code == 2

    @pytest.mark.parametrize(
        "arguments", [[], ["--steps", "0", "x.py"], ["--devices", "x", "x.py"], ["--nope", "x.py"]]
    )
    def test_usage(self, arguments: list[str]) -> None:
        result = invoke("audit", *arguments)
        assert result.exit_code == 2
        assert result.stderr.startswith("error: ")
        assert result.stderr.count("\n") == 1

    def test_no_accelerator(self, tree) -> None:
        """It is known when the script imports torch; nothing after that has run."""
        here = tree({"script.py": "print('before')\ntry:\n    import torch\nexcept Exception: pass\nprint('after')"})
        done = audit(here, "script.py")
        assert done.code == 2
        assert done.out == "before\n"
        built_for_none = r"this torch \(.*\) was built without support for any accelerator"
        reason = f"({built_for_none}|there is no accelerator here that torch can use)"
        assert re.fullmatch(f"error: {reason}: use --simulate to audit with a simulated one\n", done.err)
        assert not list(here.glob("devlint-*/run-*/record.json"))


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """A run with a finding, and its directory."""
    directory = tmp_path_factory.mktemp("simulated")
    (directory / "script.py").write_text(script("""
        import argparse
        parser = argparse.ArgumentParser()
        parser.add_argument("--steps", type=int)
        os.chdir("/")
        for step in train(parser.parse_args().steps):
            print("step", step)
    """))  # fmt: skip
    return directory, audit(directory, "--simulate", "--output", "out.json", "script.py", "--steps", "5")


@simulates
class TestSimulated:
    """One run, looked at from all sides."""

    @pytest.fixture
    def here(self, simulated: tuple[Path, Done]) -> Path:
        return simulated[0]

    @pytest.fixture
    def done(self, simulated: tuple[Path, Done]) -> Done:
        return simulated[1]

    def test_the_streams_and_the_exit_code(self, done: Done) -> None:
        assert done.out == "".join(f"step {step}\n" for step in range(5))
        assert done.err.startswith("\ndevlint audit --simulate script.py --steps 5\n")
        assert "DVL202" in done.err
        assert done.code == 1

    def test_the_record(self, here: Path, done: Done) -> None:
        record = storage.read(str(here / "out.json"))
        assert record == only(here)
        assert record.complete
        assert record.simulated
        assert record.command == ("script.py", "--steps", "5")
        assert record.directory == str(here)
        (process,) = record.processes
        assert (process.role, process.ending.kind, process.ending.code) == ("main", "finished", 0)
        assert process.device == "cuda:0"
        assert process.steps.train == 5
        # a batch of 12 floats for each of five steps, after the model's 10 numbers
        copied = [event for event in process.events if event.kind == "copy" and event.target == "cuda:0"]
        assert {event.phase: event.bytes for event in copied} == {"setup": 40, "train": 5 * 48}

    def test_it_is_shown_again_as_it_was(self, here: Path, done: Done) -> None:
        for arguments in (["out.json"], []):
            again = run(here, "-c", "import sys; sys.modules['torch'] = None; from devlint.cli import main; main()",
                        "report", *arguments)  # fmt: skip
            assert (again.code, again.out, again.err) == (0, done.err.lstrip("\n"), "")

    def test_nothing_else_is_left(self, here: Path, done: Done) -> None:
        assert sorted(path.name for path in here.iterdir() if not path.name.startswith("devlint-")) == [
            "out.json",
            "script.py",
        ]


@simulates
def test_steps_end_the_script_as_if_it_had_asked(tree) -> None:
    here = tree({"script.py": script("""
        import atexit
        atexit.register(print, "exit function")
        try:
            for step in train(100):
                print(step)
        finally:
            print("cleaned up")
    """)})  # fmt: skip
    done = audit(here, "--simulate", "--steps", "3", "--exit-zero", "script.py")
    assert done.code == 0, done.err
    assert done.out == "0\n1\ncleaned up\nexit function\n"
    (process,) = only(here).processes
    assert (process.ending.kind, process.steps.train, process.steps.limited) == ("steps", 3, True)


@simulates
def test_a_mismatch_is_explained_and_the_exit_code_is_the_scripts(tree) -> None:
    here = tree({"script.py": script("for step in train(1): model(torch.ones(3, 4))")})
    done = audit(here, "--simulate", "-q", "script.py")
    assert done.code == 1
    assert done.err.startswith("Traceback (most recent call last):\n")
    (process,) = only(here).processes
    assert process.ending.kind == "exception"
    (mismatch,) = process.mismatches
    assert {party.device for party in mismatch.parties} == {"cpu", "cuda:0"}
    assert mismatch.frame is not None
    assert mismatch.frame.file == str(here / "script.py")
    assert "DVL101" in done.err


@simulates
@POSIX
def test_a_killed_run_leaves_its_last_snapshot(tree) -> None:
    here = tree({"script.py": script("for step in train(3): step == 2 or os.kill(os.getpid(), 9)")})
    done = audit(here, "--simulate", "--output", "out.json", "script.py")
    assert (done.code, done.out, done.err) == (-signal.SIGKILL, "", "")
    record = storage.read(str(here / "out.json"))
    assert not record.complete
    (process,) = record.processes
    assert process.ending.kind == "unknown"
    # the snapshot that is taken when the first step has ended
    assert process.steps.train == 1
    again = run(here, "-m", "devlint", "report")
    assert again.code == 0
    assert "killed" in again.out


@simulates
@POSIX
def test_a_run_that_leaves_at_once_is_reported(tree) -> None:
    here = tree({"script.py": script("for step in train(3): step < 2 or os._exit(7)")})
    done = audit(here, "--simulate", "script.py")
    assert done.code == 7  # though there is a finding
    assert "devlint audit --simulate script.py" in done.err
    (process,) = only(here).processes
    assert (process.ending.kind, process.ending.code) == ("exit", 7)


SABOTAGE = """
import sys
from devlint.auditor.running.import_hook import when_imported
def sabotage():
    from devlint.auditor.loop import hooks
    def describe(*_):
        raise RuntimeError("sabotaged\\nin two lines")
    hooks.LoopHooks.describe = describe
when_imported("torch", sabotage)
"""


@simulates
def test_a_failure_inside_devlint_is_one_line(tree) -> None:
    text = "for step in train(3): print(step, model.weight.sum().item())"
    here = tree({"script.py": script(text), "before/sitecustomize.py": SABOTAGE})
    path = os.pathsep.join([environment(here)["PYTHONPATH"], str(here / "before")])
    done = audit(here, "--simulate", "--exit-zero", "script.py", PYTHONPATH=path)
    assert done.code == 0
    assert len(done.out.splitlines()) == 3
    lines = [line for line in done.err.splitlines() if line.startswith("devlint: ")]
    assert lines == [
        "devlint: the audit failed and was switched off, the script runs on: RuntimeError: sabotaged in two lines"
    ]
    assert only(here).processes[0].failure == "RuntimeError: sabotaged\nin two lines"


def test_records_that_cannot_be_kept_cost_one_line(tree) -> None:
    here = tree({"script.py": "print('ran')", **NO_TORCH})
    (here / storage.home_path().rpartition(os.sep)[2]).write_text("in the way")
    done = audit(here, "script.py")
    assert (done.code, done.out) == (0, "ran\n")
    first, empty, second = done.err.splitlines()[:3]
    assert first.startswith("warning: no record of the run is kept: ")
    assert empty == ""
    assert second == "devlint audit script.py"


def test_a_cleaned_temporary_directory_costs_no_report(tree) -> None:
    here = tree(
        {"script.py": "import glob, shutil\nfor each in glob.glob('devlint-*'): shutil.rmtree(each)", **NO_TORCH}
    )
    done = audit(here, "--output", "out.json", "script.py")
    assert done.code == 0
    assert "\ndevlint audit script.py\n" in done.err
    assert storage.read(str(here / "out.json")).complete


@POSIX
def test_a_full_disk_costs_one_line_for_each_file(tree) -> None:
    here = tree({"script.py": "print('ran')", **NO_TORCH})
    limited = """
        import resource, runpy, sys
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        sys.argv[0] = "devlint"
        runpy.run_module("devlint", run_name="__main__")
    """
    done = run(here, "-c", dedent(limited), "audit", "--output", "out.json", "script.py")
    assert (done.code, done.out) == (0, "ran\n"), done.err
    lines, _, report = done.err.partition("\ndevlint audit script.py\n")
    assert report
    assert "error: out.json: the record cannot be written: File too large" in lines.replace(f"{here}/", "").splitlines()
    assert all(line.startswith(("error: ", "warning: ")) for line in lines.splitlines())
    assert not list(here.glob("**/*.json*"))


class TestReport:
    def test_files_of_different_runs_are_refused(self, tree) -> None:
        here = tree({})
        storage.write(records.cnn(), str(here / "a.json"))
        storage.write(replace(records.cnn(), command=("other.py",)), str(here / "b.json"))
        result = invoke("report", "a.json", "b.json")
        assert result.exit_code == 2
        assert result.stderr == "error: these are records of different runs, which make no report together\n"

    def test_files_of_several_machines_become_one_report(self, tree) -> None:
        here = tree({})
        first, *others = records.distributed().processes
        whole = records.distributed()
        for name, processes in (("a", (first,)), ("b", tuple(others))):
            storage.write(Record(**{**_fields(whole), "processes": processes}), str(here / f"{name}.json"))
        storage.write(Record(**{**_fields(whole), "findings": None, "advice": None}), str(here / "whole.json"))
        together, alone = invoke("report", "a.json", "b.json"), invoke("report", "whole.json")
        assert together.exit_code == alone.exit_code == 0
        assert together.stdout == alone.stdout
        assert "ranks" in together.stdout

    def test_what_cannot_be_read_is_one_line(self, tree) -> None:
        tree({"a.json": "[]", "new.json": json.dumps({"format": 99, "processes": []})})
        for file, line in (
            ("a.json", "a.json: neither a record of devlint nor a trace of torch.profiler"),
            ("new.json", "new.json: written by a newer devlint (format 99, this one reads up to 1)"),
            ("nope.json", "nope.json: No such file or directory"),
        ):
            result = invoke("report", file)
            assert (result.exit_code, result.stdout, result.stderr) == (2, "", f"error: {line}\n")

    def test_no_run_yet(self, tmp_path) -> None:
        done = run(tmp_path, "-m", "devlint", "report")
        assert (done.code, done.out) == (2, "")
        assert done.err == "error: there is no record of a run yet: `devlint audit SCRIPT` makes one\n"


def _fields(record: Record) -> dict[str, object]:
    return {name: getattr(record, name) for name in record.__slots__}


@POSIX
def test_an_interrupt_reaches_the_script_and_the_report_comes_after(tree) -> None:
    here = tree({"script.py": "import time\nprint('ready', flush=True)\ntime.sleep(60)", **NO_TORCH})
    command = [sys.executable, "-m", "devlint", "audit", "script.py"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=here, env=environment(here), **pipes) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=LIMIT)
    assert process.returncode == -signal.SIGINT
    trace, report = err.split("\ndevlint audit script.py", 1)
    assert trace.endswith("KeyboardInterrupt\n")
    assert "interrupted" in report
    assert only(here).processes[0].ending.kind == "interrupted"


@POSIX
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_signal_in_the_middle_of_a_line(stream: str, tree) -> None:
    """The report needs the stream that the script is just writing to."""
    text = f"""
        import sys, threading, os, signal, time
        def kill():
            time.sleep(0.2)
            os.kill(os.getpid(), signal.SIGTERM)
        threading.Thread(target=kill, daemon=True).start()
        while True: sys.{stream}.write("x" * 5000)
    """
    here = tree({"script.py": dedent(text), **NO_TORCH})
    done = audit(here, "script.py")
    assert done.code == -signal.SIGTERM
    assert "\ndevlint audit script.py\n" in done.err
    assert "terminated" in done.err
    assert "Traceback" not in done.err
